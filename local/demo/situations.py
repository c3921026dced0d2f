"""The situations of the demo, as data: what is sent, what goes wrong meanwhile, and how it must end.

A situation's messages are the bodies of its event file, so that the demo, the tests and a call by hand run the same.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from local import ROOT

EVENTS = ROOT / "events" / "payments"
AMOUNT = "30.40"
CURRENCY = "EUR"


class Trouble(StrEnum):
    """What goes wrong beside the provider's answers, and must be seen to have gone wrong."""

    NONE = "none"
    CONTENTION = "contention"  # two jobs want one order at the same time
    WORKER_KILLED = "worker-killed"  # by the provider, which knows when the charge is made
    REDIS_STOPPED = "redis-stopped"  # by the demo


@dataclass(frozen=True, slots=True)
class Order:
    """An order that is in the table and in the cache before anything is sent, and how it must end.

    Attributes:
        ends: its status.
        charges: in the provider's ledger.
        requests: to charge, that the provider must have had.
    """

    order_id: str
    intent: str
    ends: str = "paid"
    charges: int = 1
    requests: int = 1

    @property
    def user(self) -> str:
        """Whose order it is: each has its own, so that no other order's end drops what is cached for it."""
        return f"user-of-{self.order_id}"

    @property
    def tags(self) -> tuple[str, ...]:
        """Cache tags that its end must drop."""
        return f"order/{self.order_id}", f"cart/{self.user}", f"order-summary/{self.user}"


@dataclass(frozen=True, slots=True)
class Read:
    """What a user reads over HTTP, through the cache.

    Attributes:
        user: who reads.
        path: what.
        before: its ETag before anything is sent, which puts it into the cache; None where there is nothing.
        after: the ETag once the jobs have ended; with the first one still in the cache, that would be read.
        changes: the version to which the user's own item is changed before its messages are sent; 0 leaves it alone.
    """

    user: str
    path: str
    before: str | None
    after: str | None
    changes: int = 0


@dataclass(frozen=True, slots=True)
class Invoice:
    """An invoice that is in the table before anything is sent.

    Attributes:
        version: of the invoice then.
        calculated: whether its totals are of that version already.
        told: the versions of which its user must have been sent a notice in the end.
    """

    invoice_id: str
    version: int = 2
    calculated: bool = False
    told: tuple[int, ...] = (3,)

    @property
    def user(self) -> str:
        """Whose invoice it is."""
        return f"user-of-{self.invoice_id}"


@dataclass(frozen=True, slots=True)
class JobEnd:
    """How a job record must end: its status, and after how many attempts.

    The latter is None where it depends on whether the outside system served others meanwhile: only then its failures count.
    """

    status: str = "completed"
    attempts: int | None = 1


DONE = (JobEnd(),)
BURIED = (JobEnd("dead-lettered"),)


@dataclass(frozen=True, slots=True)
class Situation:
    """One situation.

    Attributes:
        name: of the event file, too.
        order: what it is about; None where no order exists.
        completed: messages whose job ends, well or with a business failure.
        duplicates: messages whose job another message ended.
        dead_letters: reasons, one for each message that no attempt can help.
        jobs: the records of its jobs, in the order of the messages.
        trouble: what goes wrong beside the provider.
        waits: the provider asks for so long a wait between two requests.
        reconciles: whether the answer stays unknown until another job asks.
        worker: whose queue and events.
        read: what a user reads of it.
        invoice: what it is about, if it is about one.
    """

    name: str
    order: Order | None = None
    completed: int = 1
    duplicates: int = 0
    dead_letters: tuple[str, ...] = ()
    jobs: tuple[JobEnd, ...] = DONE
    trouble: Trouble = Trouble.NONE
    waits: timedelta = timedelta(0)
    reconciles: bool = False
    worker: str = "payments"
    read: Read | None = None
    invoice: Invoice | None = None

    @property
    def bodies(self) -> tuple[str, ...]:
        """The messages to send, as the event file has them."""
        event = json.loads((EVENTS.parent / self.worker / f"{self.name}.json").read_text(encoding="utf-8"))
        return tuple(record["body"] for record in event["Records"])


CHANGED = Invoice("inv-changed")
IN_TWO_VERSIONS = Invoice("inv-rollout")
TOLD_WITHOUT_ANSWER = Invoice("lost-answer", calculated=True, told=(2,))


def read_of_invoice(invoice: Invoice) -> Read:
    """What its user reads of an invoice that is calculated meanwhile."""
    before, after = (f'"{version}"' for version in (invoice.version, *invoice.told))
    return Read(invoice.user, f"/me/invoices/{invoice.invoice_id}", before, after)


SITUATIONS = (
    Situation("new-order", Order("order-new", "pi_ok_new")),
    Situation("same-message-three-times", Order("order-thrice", "pi_ok_thrice"), duplicates=2),
    Situation("two-jobs-one-key", Order("order-one-key", "pi_ok_one_key"), duplicates=1),
    Situation(
        "two-jobs-one-order",
        Order("order-raced", "pi_slow_raced"),
        completed=2,
        jobs=DONE * 2,
        trouble=Trouble.CONTENTION,
    ),
    Situation("malformed-json", completed=0, dead_letters=("malformed-json",), jobs=()),
    Situation("wrong-payload", completed=0, dead_letters=("invalid-payload",), jobs=()),
    Situation("unknown-order", completed=0, dead_letters=("unknown-order",), jobs=BURIED),
    Situation(
        "declined-payment",
        Order("order-declined", "pi_decline_card", ends="failed", charges=0),
        jobs=(JobEnd("failed"),),
    ),
    Situation("provider-503-twice", Order("order-503", "pi_503x2_busy", requests=3), jobs=(JobEnd(attempts=None),)),
    Situation(
        "provider-rate-limits",
        Order("order-429", "pi_429_hurry", requests=2),
        jobs=(JobEnd(attempts=None),),
        waits=timedelta(seconds=3),
    ),
    Situation("provider-is-slow", Order("order-slow", "pi_slow_late")),
    Situation("provider-charges-and-times-out", Order("order-lost", "pi_lost_answer"), reconciles=True),
    Situation(
        "worker-killed",
        Order("order-killed", "pi_kill_worker", requests=2),
        jobs=(JobEnd(attempts=2),),
        trouble=Trouble.WORKER_KILLED,
    ),
    Situation("redis-stopped", Order("order-no-redis", "pi_ok_no_redis"), trouble=Trouble.REDIS_STOPPED),
    Situation("changed-user", worker="users", read=Read("user-changed", "/me", '"1"', '"2"', changes=2)),
    Situation(
        "older-job-comes-late",
        completed=2,
        jobs=DONE * 2,
        worker="users",
        read=Read("user-late", "/me", '"1"', '"3"', changes=3),
    ),
    Situation("new-inventory", worker="inventory", read=Read("ok-new", "/me/inventory", None, '"1"')),
    Situation(
        "system-503-twice",
        jobs=(JobEnd(attempts=None),),
        worker="inventory",
        read=Read("503x2-busy", "/me/inventory", None, '"1"'),
    ),
    Situation("changed-invoice", worker="invoices", invoice=CHANGED, read=read_of_invoice(CHANGED)),
    Situation(
        "old-and-new-version",
        duplicates=1,
        worker="invoices",
        invoice=IN_TWO_VERSIONS,
        read=read_of_invoice(IN_TWO_VERSIONS),
    ),
    Situation(
        "service-sends-and-times-out",
        jobs=(JobEnd(attempts=None),),
        worker="notifications",
        invoice=TOLD_WITHOUT_ANSWER,
    ),
)

PAYMENTS = tuple(situation for situation in SITUATIONS if situation.worker == "payments")
