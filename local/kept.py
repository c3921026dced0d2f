"""A stack that stays up for people: it says what to try."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

from local.demo.seed import seed
from local.demo.situations import Order
from local.stack.note import Note, noted
from local.stack.running import STACK, STAGE

if TYPE_CHECKING:
    from collections.abc import Callable

    from local.stack.running import Stack

LOOK_EVERY = 1.0
ORDER = Order("order-try", "pi_ok_try")


def keep(stack: Stack, say: Callable[[str], None]) -> None:
    """Keep the stack up, with an order to try things on, until somebody interrupts us.

    Raises:
        ProcessError: a part of it ended.
    """
    seed(stack, [ORDER])
    with noted(Note.of(stack)) as again:
        for line in invitation(stack.api, stack.issuer.token(ORDER.user)):
            say(line)
        while True:
            stack.check()
            again()
            time.sleep(LOOK_EVERY)


def invitation(api: str, token: str) -> tuple[str, ...]:
    """What to try."""
    payload = json.dumps({"order_id": ORDER.order_id, "payment_intent_id": ORDER.intent})
    caller = '-H "Authorization: Bearer $TOKEN"'
    intent = f"-H 'Idempotency-Key: {ORDER.order_id}/capture' -H 'Content-Type: application/json'"
    return (
        f"The stack {STACK} (stage {STAGE}) is up until Ctrl-C. Its API: {api}",
        f"A token of {ORDER.user}, good for an hour (another: .venv/bin/python -m local.new_token {ORDER.user}):",
        "",
        f"TOKEN={token}",
        f"curl -i -X POST {api}/operations/capture-payment {caller} {intent} -d '{payload}'",
        f"curl -i {api}/me/orders/{ORDER.order_id} {caller}",
        "",
        "./tahan --local operation show --watch ID        (the operation_id of the answer)",
        f"./tahan --local enqueue sync-inventory --key try/sync/1 --payload '{json.dumps({'user_id': 'ok-try'})}'",
        "",
    )
