"""One technology a module, behind the Protocols of `shared`; `memory` is the shipped twin of all of them."""
