"""What a simulated queue was sent of the lanes that are in order, and what must hold of it."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from tests.simulation.jobs import told


@dataclass
class Lanes:
    """The numbers of each line in the order in which they were first sent."""

    sent: dict[str, list[int]] = field(default_factory=dict)

    def saw(self, body: str) -> str | None:
        """Note a message that is sent; give what is wrong with its place, if anything is."""
        if f'"{told.name}"' not in body:
            return None
        payload = json.loads(body)["payload"]
        line = self.sent.setdefault(payload["line"], [])
        number = payload["number"]
        if number in line:
            return None  # a copy
        line.append(number)
        return None if number == len(line) else f"{payload['line']} was sent in the order {line}"
