"""What the clients asked and were answered, and the checks over it once all is at rest."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from shared.intake.operation import OF_JOB, OperationStatus, record_of
from shared.job_record import Status
from tests.simulation.history import LEFT_NEVER, Checks, demand

if TYPE_CHECKING:
    from tests.clients.world import ClientWorld

BEGUN = {OperationStatus.RUNNING, OperationStatus.RETRYING, OperationStatus.UNKNOWN}
FINAL = {
    OperationStatus.DONE,
    OperationStatus.FAILED,
    OperationStatus.CANCELLED,
    OperationStatus.DEAD_LETTERED,  # nobody replays here
}
# What each kind of request may be answered; anything may go unanswered.
ALLOWED = {
    "post": {202, 429, 500, 503},
    "other payload": {422, 429, 500, 503},  # I3: never accepted
    "get": {200, 429, 500, 503},
    "foreign post": {404, 429, 500, 503},  # API1: the same whether it is another's or nobody's
    "foreign get": {404, 429, 500, 503},
    "delete": {200, 409, 429, 500, 503},
    "foreign delete": {404, 429, 500, 503},
    "list": {200, 429, 500, 503},
}


@dataclass(frozen=True)
class Call:
    """A request; `status` is None where no answer came, so that it may have been done or not."""

    kind: str
    owner: str
    key: str
    begun: float
    ended: float
    status: int | None
    body: Any = None
    replayed: bool = False


@dataclass
class Books:
    """The history of all clients."""

    calls: list[Call] = field(default_factory=list)

    def of(self, *kinds: str) -> list[Call]:
        """Calls of these kinds that were answered."""
        return [call for call in self.calls if call.kind in kinds and call.status is not None]


@dataclass
class Audit:
    """The promises to clients, over a run at rest."""

    world: ClientWorld

    def all(self) -> list[str]:
        """Check all; give their names.

        Raises:
            Violation: one does not hold.
        """
        inner: Any = Checks(self.world)
        checks = (
            self.only_what_is_documented_is_answered,
            self.i1_accepted_means_durable,
            self.i2_one_operation_for_each_intent,
            self.i16_no_status_goes_back,
            self.api1_nobody_sees_anothers,
            self.i26_the_books_agree,
            self.r3_6_the_effect_agrees_with_the_status,
            inner.nothing_was_seen_to_break,
            inner.i14_one_effect,
            inner.g5_one_charge,
            inner.i15_i16_states_are_monotone,
            inner.i19_attempts_are_bounded,
            inner.i24_everything_ends,
        )
        for check in checks:
            check()
        return [check.__name__ for check in checks]

    def only_what_is_documented_is_answered(self) -> None:
        """No client gets an answer that its request cannot have."""
        for call in self.world.books.calls:
            demand(call.status is None or call.status in ALLOWED[call.kind], "API9", call)

    def i1_accepted_means_durable(self) -> None:
        """What was answered with 202 is there, and has ended."""
        accepted = [call for call in self.world.books.of("post") if call.status == 202]
        demand(accepted, "I1", "nothing was accepted")
        for call in accepted:
            view = self.world.history.records.get(call.body["operation_id"].removeprefix("op_"))
            demand(view is not None, "I1", f"{call} is gone")
            demand(view is not None and (OF_JOB[view.status] in FINAL or view.status is Status.UNKNOWN), "I24", view)

    def i2_one_operation_for_each_intent(self) -> None:
        """One key has one operation, told the same to everybody, and accepted for the first time once at the most."""
        told: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
        first: Counter[tuple[str, str]] = Counter()
        for call in self.world.books.of("post"):
            if call.status == 202:
                told[call.owner, call.key].add(call.body["operation_id"])
                first[call.owner, call.key] += not call.replayed
        demand(all(len(ids) == 1 for ids in told.values()), "I2", told)
        demand(all(count <= 1 for count in first.values()), "I2", first)
        there = Counter((view.names["owner"], view.names["idempotency_key"]) for view in self._accepted())
        demand(all(count == 1 for count in there.values()), "I2", there)
        asked = {(call.owner, call.key) for call in self.world.books.calls if call.kind == "post"}
        demand(there.keys() <= asked, "I2", f"jobs of nobody: {there.keys() - asked}")

    def i16_no_status_goes_back(self) -> None:
        """What a client sees of an operation never goes back but by a replay, and an end never changes."""
        seen: defaultdict[str, list[Call]] = defaultdict(list)
        for call in self.world.books.of("post", "get", "delete"):
            if call.status in {200, 202}:
                seen[call.body["operation_id"]].append(call)
        for name, calls in seen.items():
            replays = self.world.history.reopened.get(record_of(name) or "", [])
            for later in calls:
                before = [call for call in calls if call.ended < later.begun]
                for earlier in before:
                    may = _may_follow(earlier.body, later.body)
                    may = may or any(earlier.begun <= moment <= later.ended for moment in replays)
                    demand(may, "I16", f"{earlier} was followed by {later}")

    def api1_nobody_sees_anothers(self) -> None:
        """A list holds its owner's alone."""
        owners = {view.names["operation_id"]: view.names["owner"] for view in self._accepted()}
        for call in self.world.books.of("list"):
            if call.status == 200:
                listed = [each["operation_id"] for each in call.body["operations"]]
                demand({owners[each] for each in listed} <= {call.owner}, "API1", call)
                demand(len(set(listed)) == len(listed), "API1", call)

    def i26_the_books_agree(self) -> None:
        """Of each owner and in all: what was accepted has ended one way, and each has had its one message."""
        history = self.world.history
        by_owner: defaultdict[str, Counter[Status]] = defaultdict(Counter)
        for view in self._accepted():
            by_owner[view.names["owner"]][view.status] += 1
        ends = LEFT_NEVER | {Status.DEAD_LETTERED, Status.UNKNOWN}
        for owner, ended in by_owner.items():
            demand(ended.keys() <= ends, "I26", f"{owner}: {ended}")
        accepted = len(self._accepted())
        demand(sum(ended.total() for ended in by_owner.values()) == accepted, "I26", by_owner)
        postings = {history.accepted_by[view.record] for view in self._accepted()}
        demand(len(postings) == accepted, "I26", "two jobs share a message")
        demand(postings <= history.sent.keys(), "I26", postings - history.sent.keys())
        demand(not history.unfinished, "I44", f"what has ended still counts: {history.unfinished}")

    def r3_6_the_effect_agrees_with_the_status(self) -> None:
        """Done is charged once, cancelled is not charged."""
        charges = self.world.outside.charges
        for view in self._accepted():
            intent = self.world.intents[view.names["owner"], view.names["idempotency_key"]]
            if view.status is Status.COMPLETED:
                demand(charges[intent] == 1, "G5", view)
            if view.status is Status.CANCELLED:
                demand(charges[intent] == 0, "R3.6", f"cancelled and charged: {view}")

    def _accepted(self) -> list[Any]:
        history = self.world.history
        return [history.records[record] for record in history.accepted_at]


def _may_follow(earlier: dict[str, Any], later: dict[str, Any]) -> bool:
    before, after = OperationStatus(earlier["status"]), OperationStatus(later["status"])
    if before in FINAL:
        return earlier == later
    return not (before in BEGUN and after is OperationStatus.PENDING)
