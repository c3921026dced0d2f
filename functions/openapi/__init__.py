"""The front door's OpenAPI document, made from the declarations when it is asked for; never part of a function."""
