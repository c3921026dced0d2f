"""Of what is deployed: plain Python first, then rules that hold over every template."""
