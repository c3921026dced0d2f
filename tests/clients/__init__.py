"""Clients that behave like browsers of consoles and televisions, before the real front door, in virtual time."""
