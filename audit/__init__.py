"""Gates over what is deployed: tools and rules of our own read the synthesised templates, exceptions stand in one file."""
