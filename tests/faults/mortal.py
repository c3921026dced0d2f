"""Dying and losing replies at every step that does I/O, by number: the stores count their calls and fail at one of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from shared.errors import Ambiguous, CacheUnavailable, StoreUnavailable, Unavailable


class Died(BaseException):
    """The process is gone; nothing it would still have done happens."""


class Fault(StrEnum):
    """What goes wrong at a step."""

    DIES_BEFORE = "dies-before"
    DIES_AFTER = "dies-after"
    REPLY_LOST = "reply-lost"
    NOT_DONE = "not-done"


@dataclass
class Life:
    """One process: at which step it fails, and how."""

    at: int = -1
    fault: Fault = Fault.DIES_BEFORE
    steps: list[str] = field(default_factory=list)
    is_dead: bool = False
    fired: bool = False

    def step(self, name: str, error: Exception, call: Any) -> Any:
        if self.is_dead:
            raise Died
        self.steps.append(name)
        if len(self.steps) - 1 != self.at:
            return call()
        self.fired = True
        match self.fault:
            case Fault.DIES_BEFORE:
                self.is_dead = True
                raise Died
            case Fault.DIES_AFTER:
                call()
                self.is_dead = True
                raise Died
            case Fault.REPLY_LOST:
                call()
                raise error
            case Fault.NOT_DONE:
                raise error


class Mortal:
    """A store within a life."""

    def __init__(self, inner: Any, life: Life, name: str, error: Exception) -> None:
        self._inner = inner
        self._life = life
        self._name = name
        self._error = error

    def __getattr__(self, attribute: str) -> Any:
        value = getattr(self._inner, attribute)
        if not callable(value):
            return value

        def call(*arguments: Any, **named: Any) -> Any:
            return self._life.step(f"{self._name}.{attribute}", self._error, lambda: value(*arguments, **named))

        return call


def database(inner: Any, life: Life) -> Any:
    """A database within a life."""
    return Mortal(inner, life, "database", StoreUnavailable("no answer"))


def cache(inner: Any, life: Life) -> Any:
    """A cache within a life."""
    return Mortal(inner, life, "cache", CacheUnavailable())


def queue(inner: Any, life: Life) -> Any:
    """A queue within a life."""
    return Mortal(inner, life, "queue", Unavailable("no answer", dependency="sqs"))


def transport(inner: Any, life: Life) -> Any:
    """A dependency within a life."""
    return Mortal(inner, life, "provider", Ambiguous("no answer", dependency="payment-provider"))
