"""One client: it repeats itself, loses answers, asks in parallel, polls too often, sleeps, and comes back with old state."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from shared.intake.operation import OperationStatus
from tests.clients.books import FINAL, Call

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.clients.world import ClientWorld
    from tests.door import Answer, Client

LOST_ON_THE_WAY_IN = 0.04
LOST_ON_THE_WAY_OUT = 0.08
MOST_POLLS = 400
CANCELS = 0.15  # of the operations


@dataclass(frozen=True)
class Intent:
    """Something that the client wants, once; `mine` tells whether what it is about is there, and the client's own."""

    key: str
    payload: dict[str, str]
    mine: bool = True


@dataclass
class Browser:
    """A client and its habits, which the seed draws."""

    world: ClientWorld
    owner: str
    user: str
    intents: list[Intent]
    impatient: bool = field(init=False)

    def __post_init__(self) -> None:
        self.impatient = self.world.random.random() < 0.2

    def live(self) -> None:
        """Pursue each intent to its end."""
        for intent in self.intents:
            self._pursue(intent)

    def _pursue(self, intent: Intent) -> None:
        random = self.world.random
        if not intent.mine:
            self._ask("foreign post", intent.key, self._post(intent))
            return
        operation = self._accepted(intent)
        if random.random() < 0.1:
            self._ask("other payload", intent.key, self._post(Intent(intent.key, {**intent.payload, "order_id": "x"})))
        if random.random() < 0.1:  # switched off with the page open; what it remembers is from before
            self._sleep(random.uniform(60, 600))
            operation = self._accepted(intent)
        if random.random() < CANCELS:
            self._sleep(random.uniform(0, 5))
            for _ in range(random.randint(1, 2)):
                self._ask("delete", intent.key, lambda http: http.delete(operation, user=self.user))
        self._spy()
        self._watch(intent, operation)
        if random.random() < 0.2:
            self._sleep(random.uniform(1, 100))
            self._accepted(intent)
            self._ask("get", intent.key, lambda http: http.get(operation, user=self.user))
            self._ask("list", "", lambda http: http.list("limit=3", user=self.user))

    def _accepted(self, intent: Intent) -> str:
        """Post until it is known to be accepted, maybe twice at once; give the operation."""
        while True:
            if self.world.random.random() < 0.3:
                self._aside(lambda: self._ask("post", intent.key, self._post(intent)))
            answer = self._ask("post", intent.key, self._post(intent))
            if answer is not None and answer[0] == 202:
                operation: str = answer[1]["operation_id"]
                return operation
            self._wait(answer)

    def _watch(self, intent: Intent, operation: str) -> None:
        """Poll until it has ended."""
        for number in range(MOST_POLLS):
            answer = self._ask("get", intent.key, lambda http: http.get(operation, user=self.user))
            if answer is not None and answer[0] == 200 and OperationStatus(answer[1]["status"]) in FINAL:
                return
            if self.impatient and number < 15:
                self._sleep(0.1)
            else:
                self._wait(answer)
                self._sleep(min(3.0 * number, 60.0))

    def _spy(self) -> None:
        """Look for what is another's."""
        foreign = self.world.somebody_elses(self.owner)
        if foreign is not None and self.world.random.random() < 0.1:
            kind, ask = self.world.random.choice(
                [
                    ("foreign get", lambda http: http.get(foreign, user=self.user)),
                    ("foreign delete", lambda http: http.delete(foreign, user=self.user)),
                ]
            )
            self._ask(kind, "", ask)

    def _post(self, intent: Intent) -> Callable[[Client], Answer]:
        return lambda http: http.post(intent.payload, key=intent.key, user=self.user)

    def _ask(self, kind: str, key: str, ask: Callable[[Client], Answer]) -> Answer | None:
        """Ask once, over a bad line; None if no answer came."""
        random, clock = self.world.random, self.world.scheduler
        begun = clock.now
        self._sleep(random.uniform(0.01, 0.3))
        answer = None if random.random() < LOST_ON_THE_WAY_IN else self.world.serve(ask)
        self._sleep(random.uniform(0.01, 0.3))
        if random.random() < LOST_ON_THE_WAY_OUT:
            self.world.faults.fired["answer_lost"] += answer is not None
            answer = None
        status, body, headers = answer or (None, None, {})
        replayed = headers.get("Idempotent-Replayed") == "true"
        self.world.books.calls.append(Call(kind, self.owner, key, begun, clock.now, status, body, replayed))
        return answer

    def _wait(self, answer: Answer | None) -> None:
        """As long as the answer says, if it came; some do not listen."""
        told = 1.0 if answer is None else float(answer[2].get("Retry-After", "1"))
        self._sleep(self.world.random.uniform(0.1, 0.5) if self.impatient else told * self.world.random.uniform(1, 1.5))

    def _aside(self, body: Callable[[], Any]) -> None:
        self.world.alongside(f"{self.user}-aside", body)

    def _sleep(self, seconds: float) -> None:
        self.world.scheduler.sleep(seconds)
