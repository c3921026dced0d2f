"""Traffic for a recording: a wave of orders to be paid, most of which go well, and users who read and ask over HTTP."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

from local.demo.client import Client, Request
from local.demo.outbox_switch import OutboxSwitch
from local.demo.over_http import capture
from local.demo.seed import seed
from local.demo.situations import Order

if TYPE_CHECKING:
    from collections.abc import Sequence

    from local.stack.running import Stack

# Orders of each wave: few, more, fewer; in the last but two the provider is down for everybody, until its breaker looks again.
WAVES = (4, 8, 14, 20, 26, 20, 14, 8, 4)
DOWN = 6
PAUSE = 8.0  # seconds between two waves
IN_BATCH = 10  # messages that SQS takes at once
# How the provider behaves (see local/outside/payment_ledger.py), as parts of a wave.
USUAL = ("pi_ok", "pi_ok", "pi_ok", "pi_slow", "pi_ok", "pi_429", "pi_ok", "pi_503x2", "pi_ok", "pi_decline")


def send_waves(stack: Stack) -> None:
    """Send all waves, one after another."""
    client, parts = Client(stack.api, stack.issuer), OutboxSwitch.of(stack.clients)
    for wave, size in enumerate(WAVES):
        kinds = ("pi_503x2",) if wave == DOWN else USUAL
        orders = [
            Order(f"order-wave-{wave}-{place}", f"{kinds[place % len(kinds)]}_wave_{wave}_{place}")
            for place in range(size)
        ]
        seed(stack, orders)
        _send(stack, [_body(order) for order in orders])
        for order in orders[:3]:
            for _ in range(3):
                client.get(order.user, f"/me/orders/{order.order_id}")
        client.make(capture(orders[0], copies=2))  # its order is paid, or under way: one operation
        client.make(Request("GET", "/operations/op_none", orders[0].user))
        for _ in range(2):  # a minute of the stage is shorter than the stand-in's scheduler knows
            parts.sweep()
            time.sleep(PAUSE / 2)


def _body(order: Order) -> str:
    payload = {"order_id": order.order_id, "payment_intent_id": order.intent}
    message = {"job_type": "capture-payment", "version": 1, "idempotency_key": f"{order.order_id}/message"}
    return json.dumps({**message, "payload": payload})


def _send(stack: Stack, bodies: Sequence[str]) -> None:
    for start in range(0, len(bodies), IN_BATCH):
        stack.clients.sqs.send_message_batch(
            QueueUrl=stack.outputs["QueuePayments"],
            Entries=[
                {"Id": str(place), "MessageBody": body} for place, body in enumerate(bodies[start : start + IN_BATCH])
            ],
        )
