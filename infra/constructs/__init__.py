"""One thing that is deployed a module; their numbers come from the declaration, none are computed here."""
