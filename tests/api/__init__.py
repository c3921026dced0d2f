"""Schemathesis against the running front door: real HTTP, real tokens, moto and a real Valkey behind it."""
