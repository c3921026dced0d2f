"""The functions as a user of a real Valkey: with the very access string that ElastiCache is given, and a password for a token."""

from __future__ import annotations

from typing import TYPE_CHECKING

from redis import Redis

from infra.access import access_string

if TYPE_CHECKING:
    from local.stack.valkey import Valkey

USER = "functions"
PASSWORD = "of the test"


class CacheUser:
    """Its credentials, which never change."""

    def get_credentials(self) -> tuple[str, str]:
        return USER, PASSWORD

    def forget(self) -> None:
        pass


def admit(server: Valkey) -> None:
    """Make the server know the user."""
    with Redis(port=server.port) as redis:
        redis.execute_command("ACL", "SETUSER", USER, f">{PASSWORD}", *access_string().split())
