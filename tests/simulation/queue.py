"""A standard SQS queue in virtual time: at least once, in any order, with visibility, receive counts and redrive."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from shared.delivery import DEAD_LETTER_ATTRIBUTE, read_event
from shared.errors import Refused
from tests.world import record_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import timedelta
    from random import Random

    from shared.delivery import Delivery
    from shared.producer import Outgoing
    from tests.simulation.scheduler import Scheduler


@dataclass
class Held:
    """A message on the queue."""

    id: str
    body: str
    death: int = 0
    visible_at: float = 0.0
    receives: int = 0
    receipt: str = ""


@dataclass
class SimQueue:
    """The queue and its dead-letter queue."""

    scheduler: Scheduler
    random: Random
    visibility: float
    max_receives: int
    messages: dict[str, Held] = field(default_factory=dict)
    dead: list[tuple[str, dict[str, Any] | None]] = field(default_factory=list)
    sent: int = 0

    def put(self, body: str, *, death: int = 0, delay: float = 0.0) -> str:
        """Take a message."""
        self.sent += 1
        name = f"m{self.sent}"
        self.messages[name] = Held(name, body, death, self.scheduler.now + delay)
        return name

    @property
    def has_visible(self) -> bool:
        """Whether a poll would find something."""
        return any(message.visible_at <= self.scheduler.now for message in self.messages.values())

    def receive(self, most: int, *, duplicate: bool) -> list[Delivery]:
        """Give some visible messages; with `duplicate` they stay visible, as a standard queue may have it."""
        visible = [message for message in self.messages.values() if message.visible_at <= self.scheduler.now]
        self.random.shuffle(visible)
        taken = []
        for message in visible[:most]:
            message.receives += 1
            if message.receives > self.max_receives:
                del self.messages[message.id]
                self.dead.append((message.body, None))
                continue
            message.receipt = f"{message.id}/{message.receives}"
            if not duplicate:
                message.visible_at = self.scheduler.now + self.visibility
            system = {"ApproximateReceiveCount": str(message.receives)}
            record = record_of(message.body, message.id, death=message.death, system=system)
            (delivery,) = read_event({"Records": [{**record, "receiptHandle": message.receipt}]})
            taken.append(delivery)
        return taken

    def delete(self, delivery: Delivery) -> None:
        """Delete a message; a receipt from before a later receive does nothing."""
        message = self.messages.get(delivery.message_id)
        if message is not None and message.receipt == delivery.receipt_handle:
            del self.messages[message.id]

    def hide(self, delivery: Delivery, after: timedelta) -> None:
        """Change a message's visibility."""
        message = self.messages.get(delivery.message_id)
        if message is None or message.receipt != delivery.receipt_handle:
            refusal = "the receipt is stale"
            raise Refused(refusal)
        message.visible_at = self.scheduler.now + after.total_seconds()

    def dead_letter(self, delivery: Delivery, reason: str) -> None:
        """Take a dead letter."""
        self.dead.append((delivery.body, json.loads(reason)))

    def send(self, batch: Sequence[Outgoing]) -> Sequence[str]:
        """Take what the relay sends."""
        ids = []
        for outgoing in batch:
            reason = outgoing.attributes.get(DEAD_LETTER_ATTRIBUTE)
            death = 0 if reason is None else json.loads(reason)["death"]
            ids.append(self.put(outgoing.body, death=death, delay=outgoing.delay.total_seconds()))
        return ids
