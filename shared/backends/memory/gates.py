"""The twin of gates in memory, by the clock given: for tests and the simulator, and for a process that Redis has left alone."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING

from shared.gate import LEAST_RAMP, GateState, Health, Turned, TurnedAway

if TYPE_CHECKING:
    from shared.clock import Clock
    from shared.gate import CircuitBreaker, Gate


@dataclass(slots=True)
class _State:
    """One gate; moments in monotonic seconds. What each is, redis/gate_scripts.py tells."""

    open: float | None = None
    down: float | None = None
    times: int = 0
    probe: str | None = None
    until: float = 0.0
    ramp: float | None = None
    failures: int = 0
    served: float | None = None
    due: float = 0.0
    tokens: float | None = None
    filled: float = 0.0
    calls: dict[str, float] = field(default_factory=dict)


@dataclass(slots=True)
class MemoryGates:
    """Gates of one process."""

    clock: Clock
    states: dict[str, _State] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def enter(self, gate: Gate, token: str, *, is_retry: bool, patience: timedelta) -> TurnedAway | timedelta:
        """Let a call in, or turn it away."""
        with self._lock:
            state, now = self._state(gate), self.clock.monotonic()
            held = gate.held.total_seconds()
            if token in state.calls:
                return timedelta(seconds=max(0.0, state.calls[token] - held - now))
            wait = 0.0
            if gate.breaker is not None and state.open is not None:
                if now < state.open:
                    return _away(Turned.OPEN, state.open - now)
                if state.probe is not None and now < state.until:
                    return _away(Turned.OPEN, state.until - now)
                state.probe, state.until = token, now + held
            else:
                bounded = self._bounded(gate, state, now, is_retry=is_retry, patience=patience.total_seconds())
                if isinstance(bounded, TurnedAway):
                    return bounded
                wait = bounded
            state.calls[token] = now + wait + held
            return timedelta(seconds=wait)

    def leave(self, gate: Gate, token: str, *, served: bool | None) -> Health:
        """Note how a call went."""
        with self._lock:
            state, now = self._state(gate), self.clock.monotonic()
            ends, was_closed = state.calls.pop(token, None), state.open is None
            if ends is not None:
                begun = min(now, ends - gate.held.total_seconds())
                self._left(gate.breaker, state, now, token, served=begun if served else served)
            open_for = 0.0 if state.open is None or gate.breaker is None else max(1e-6, state.open - now)
            ago = None if state.served is None else timedelta(seconds=now - state.served)
            return Health(timedelta(seconds=open_for), ago, opened=was_closed and state.open is not None)

    def look(self, gate: Gate) -> GateState:
        """How a gate stands."""
        with self._lock:
            state, now = self._state(gate), self.clock.monotonic()
            return GateState(
                timedelta(seconds=max(0.0, (state.open or now) - now)),
                None if state.down is None else timedelta(seconds=now - state.down),
                sum(end > now for end in state.calls.values()),
                state.failures,
                state.ramp is not None and gate.breaker is not None and now - state.ramp < _seconds(gate.breaker.ramp),
            )

    def _state(self, gate: Gate) -> _State:
        return self.states.setdefault(gate.name, _State())

    def _bounded(self, gate: Gate, state: _State, now: float, *, is_retry: bool, patience: float) -> TurnedAway | float:
        """Count the call against every bound, if each of them lets it in; give the wait until its place comes."""
        due, wait = now, 0.0
        interval, burst = self._pace(gate, state, now)
        if interval:
            due = min(max(state.due, now), now + interval * burst + patience)
            wait = max(0.0, due + interval - interval * burst - now)
            if wait > patience:
                return _away(Turned.RATE, wait)
        state.calls = {token: end for token, end in state.calls.items() if end > now}
        if gate.concurrency is not None and len(state.calls) >= gate.concurrency:
            return _away(Turned.CONCURRENCY, gate.held.total_seconds() / 10)
        if gate.retries is not None:
            budget, refill = gate.retries, gate.retries.per_minute / 60
            saved = budget.burst if state.tokens is None else state.tokens + (now - state.filled) * refill
            tokens = min(budget.burst, saved)
            if is_retry and tokens < 1:
                return _away(Turned.RETRIES, (1 - tokens) / refill)
            state.tokens = tokens - 1 if is_retry else min(budget.burst, tokens + budget.share)
            state.filled = now
        state.due = due + interval
        return wait

    @staticmethod
    def _pace(gate: Gate, state: _State, now: float) -> tuple[float, int]:
        """Seconds from call to call, and calls at once; slower for a while after the breaker has closed."""
        if gate.rate is None:
            return 0.0, 1
        interval = gate.rate.interval.total_seconds()
        if state.ramp is None or gate.breaker is None:
            return interval, gate.rate.burst
        ramp = _seconds(gate.breaker.ramp)
        if now - state.ramp >= ramp:
            state.ramp, state.times = None, 0
            return interval, gate.rate.burst
        return interval / max((now - state.ramp) / ramp, LEAST_RAMP), 1

    @staticmethod
    def _left(
        breaker: CircuitBreaker | None, state: _State, now: float, token: str, *, served: float | bool | None
    ) -> None:
        """Note how a call went; one that was served by when it began."""
        looks = state.probe == token
        if not isinstance(served, bool) and served is not None:
            state.served, state.failures = max(state.served or 0.0, served), 0
            if looks:
                state.open = state.down = state.probe = None
                state.ramp = now
        elif served is False and breaker is not None:
            if looks:
                _open(breaker, state, now)
            elif state.open is None:
                state.failures += 1
                if state.failures >= breaker.failures:
                    state.down = now
                    _open(breaker, state, now)
        elif looks:
            state.probe = None


def _open(breaker: CircuitBreaker, state: _State, now: float) -> None:
    state.open = now + min(_seconds(breaker.longest_pause), _seconds(breaker.pause) * 2.0 ** min(state.times, 60))
    state.times += 1
    state.failures, state.ramp, state.probe = 0, None, None


def _away(why: Turned, seconds: float) -> TurnedAway:
    return TurnedAway(why, timedelta(seconds=seconds))


def _seconds(time: timedelta) -> float:
    return time.total_seconds()
