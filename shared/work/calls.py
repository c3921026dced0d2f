"""The calls of one attempt to the outside: within the bounds of each dependency, and never twice where twice is two effects."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from shared.errors import AlreadyCalled, Ambiguous, SettingsError, Unavailable, Unrepeatable
from shared.failpoints import Failpoint, failpoint
from shared.trace import TRACEPARENT

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime, timedelta

    from shared.clock import Clock, Tokens
    from shared.dependency import Dependency, Reply, Transport
    from shared.job_record import Hold
    from shared.job_records import JobRecords
    from shared.trace import Trace
    from shared.work.way import Way


@dataclass(frozen=True, slots=True)
class Intents:
    """What the job's record tells of calls that cannot be repeated; for one attempt."""

    records: JobRecords
    hold: Hold

    def intend(self, dependency: str) -> bool:
        """Write that this attempt is about to call; False if an earlier attempt wrote so, and nobody took it back.

        Raises:
            ClaimLost: the job is no longer held by this attempt.
            Unavailable: the store did not answer.
        """
        return self.records.intend(self.hold, dependency)

    def withdraw(self, dependency: str) -> None:
        """Take the intent back, since the call was certainly not done.

        Raises:
            ClaimLost: or Unavailable, as above: the intent stays.
        """
        self.records.withdraw(self.hold, dependency)


@dataclass(slots=True)
class Calls:
    """Makes the calls of one attempt.

    Attributes:
        way: through the dependencies' gates.
        intents: for dependencies that take no key.
        begun_at: when the job's first attempt began: no key of it is older.
        trace: of what asked for the job; goes on in each call.
    """

    transport: Transport
    clock: Clock
    tokens: Tokens
    way: Way
    intents: Intents
    begun_at: datetime | None = None
    trace: Trace | None = None
    # Of this attempt's calls that cannot be repeated: the dependencies that answered one, and those that may have done one.
    _answered: set[str] = field(default_factory=set)
    _unanswered: set[str] = field(default_factory=set)

    @property
    def answered(self) -> frozenset[str]:
        """The dependencies that answered a call which cannot be repeated, all of them: their intents may go."""
        return frozenset(self._answered - self._unanswered)

    def begin_step(self, now: datetime) -> None:
        """A checkpoint is committed: what was called before is settled, and keys of the next step are no older than it."""
        self._answered.clear()
        self.begun_at = now

    def make(  # noqa: PLR0913 - one request, and what must hold for it
        self,
        use: Dependency,
        method: str,
        path: str,
        *,
        body: Mapping[str, object] | None,
        headers: Mapping[str, str],
        time_left: Callable[[], timedelta],
        check: Callable[[], None],
    ) -> Reply:
        """Call a dependency once.

        Args:
            use: the dependency as the job declares it.
            method: of HTTP.
            path: behind the base URL.
            body: as JSON.
            headers: beside those that every call has.
            time_left: until the attempt's deadline.
            check: raises where the attempt must not go on; it is asked again after a wait.

        Raises:
            NotNow: its gate lets nobody in.
            Unavailable: it was not done.
            Ambiguous: it may have been done, now or by an earlier attempt.
        """
        check()
        if self.begun_at is not None and use.has_forgotten(method, self.clock.now() - self.begun_at):
            message = f"{use.name} may have forgotten this job's key: what happened has to be found out first."
            raise Ambiguous(message, dependency=use.name)
        sent = dict(headers)
        if self.trace is not None and TRACEPARENT not in {name.lower() for name in sent}:
            sent[TRACEPARENT] = self.trace.child(self.tokens).header
        is_repeatable = use.is_repeatable(method)
        with self.way.through(use, time_left):
            check()
            if not is_repeatable:
                self._intend(use)
            failpoint(Failpoint.CALLING)
            try:
                reply = self.transport.send(
                    use, method, path, body=body, headers=sent, within=min(use.timeout, time_left())
                )
            except Ambiguous as error:
                if is_repeatable:
                    raise
                self._unanswered.add(use.name)
                raise Unrepeatable(str(error), dependency=use.name) from error
            except (Unavailable, SettingsError):  # the latter says where to call, before anything is sent
                if not is_repeatable:
                    self._withdraw(use)
                raise
            if not is_repeatable:
                self._answered.add(use.name)
            failpoint(Failpoint.CALLED)
            return reply

    def _intend(self, use: Dependency) -> None:
        if use.name in self._unanswered:
            message = f"This attempt has called {use.name}, and got no answer."
            raise AlreadyCalled(message, dependency=use.name)
        try:
            is_first = self.intents.intend(use.name)
        except Unavailable:  # it may be written all the same, and nothing was sent
            self._withdraw(use)
            raise
        if not is_first:
            message = f"An earlier attempt called {use.name}, and nobody knows how it ended."
            raise AlreadyCalled(message, dependency=use.name)
        failpoint(Failpoint.INTENDED)

    def _withdraw(self, use: Dependency) -> None:
        """The call was not done: a later attempt may make it. If this fails, the later attempt will not, and is unknown.

        Where another call of this attempt was done, the intent stays for that one.
        """
        if use.name not in self._answered:
            with contextlib.suppress(Unavailable):
                self.intents.withdraw(use.name)
