"""Cache entries in Valkey or Redis: calls of the scripts, and what their answers mean."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from shared.backends.redis.cache_scripts import ABANDON, DISCARD, DROP, FETCH, PROLONG, PUT, REFRESH, STORE
from shared.backends.redis.keys import escaped, millis, tag_key
from shared.backends.redis.lines import Command
from shared.caching.store import AFTERLIFE, Busy, Found, Hit, Loaded, Miss, Stale
from shared.errors import Refused
from shared.tag import Version

if TYPE_CHECKING:
    from shared.backends.redis.connection import Connection
    from shared.caching.lives import Lives
    from shared.tag import Tag


def drop(tag: Tag) -> Command:
    """The command that drops the tag: entries and refill tokens go, a floor stays, and the entry that takes their place."""
    key, fresh = tag_key(tag.name), tag.fresh
    if fresh is None:
        return Command.script(DROP, key, _text(tag.floor), millis(AFTERLIFE))
    return Command.script(REFRESH, key, escaped(fresh.name), millis(AFTERLIFE), *_written(fresh.entry, fresh.lives))


@dataclass(frozen=True, slots=True)
class RedisCache:
    """Cache entries; tags are dropped by `RedisStore.finish`, together with the leases."""

    connection: Connection

    def fetch(self, tag: str, name: str, token: str, lease: timedelta, at_least: Version | None) -> Found:
        """Give the entry, or the refill lease, or tell who is before."""
        reply = self._eval(FETCH, tag, name, token, millis(lease), _text(at_least))
        match reply:
            case str():
                version, _, value = reply.partition(" ")
                return Hit(_loaded(value, version))
            case ["hit", value, version]:
                return Hit(_loaded(value, version))
            case ["refreshing", value, version]:
                return Hit(_loaded(value, version), refreshing=True)
            case ["stale", value, version, left]:
                return Stale(_loaded(value, version), _time(left))
            case ["busy"]:
                return Busy()
            case _:
                return Miss()

    def store(self, tag: str, name: str, token: str, entry: Loaded, lives: Lives) -> bool:
        """Keep what was loaded, if its token is still there and nothing newer is known."""
        return bool(self._eval(STORE, tag, name, token, *_written(entry, lives)))

    def prolong(self, tag: str, name: str, token: str, lease: timedelta) -> bool:
        """Renew the refill lease."""
        return bool(self._eval(PROLONG, tag, name, token, millis(lease)))

    def abandon(self, tag: str, name: str, token: str) -> None:
        """Give the refill lease back."""
        self._eval(ABANDON, tag, name, token)

    def put(self, tag: str, name: str, entry: Loaded, lives: Lives) -> bool:
        """Move a versioned entry forward."""
        if entry.version is None:
            message = "Only an entry with a version can be put: without one nobody can tell old from new."
            raise Refused(message)
        return bool(self._eval(PUT, tag, name, *_written(entry, lives)))

    def discard(self, tag: str, name: str) -> None:
        """Forget the entry and revoke its refill token."""
        self._eval(DISCARD, tag, name)

    def _eval(self, script: str, tag: str, name: str, *arguments: str) -> object:
        return self.connection.send(Command.script(script, tag_key(tag), escaped(name), millis(AFTERLIFE), *arguments))


def _written(entry: Loaded, lives: Lives) -> tuple[str, ...]:
    value = () if entry.value is None else (entry.value,)
    return (_text(entry.version), millis(lives.soft), millis(lives.hard), *value)


def _loaded(value: object, version: object) -> Loaded:
    return Loaded(None if value is None else str(value), Version.read(str(version)) if version else None)


def _text(version: Version | None) -> str:
    return "" if version is None else version.text


def _time(left: object) -> timedelta:
    return timedelta(milliseconds=int(str(left)))
