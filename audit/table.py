"""How an audit is shown: a table for people, one JSON object for programs."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from rich.markup import escape
from rich.table import Table

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rich.console import Console

    from audit.exceptions import Judgement


@dataclass(frozen=True, slots=True)
class Report:
    """A whole audit; `seconds` is how long each gate took."""

    templates: tuple[str, ...]
    seconds: Mapping[str, float]
    judgement: Judgement

    def as_json(self) -> str:
        """One line for programs."""
        judgement = self.judgement
        whole = {
            "ok": judgement.is_clean,
            "templates": self.templates,
            "gates": [
                {"gate": gate, "open": opened, "excused": excused, "seconds": round(self.seconds[gate], 1)}
                for gate, opened, excused in self._rows()
            ],
            "open": [asdict(finding) for finding in judgement.open],
            "exceptions": judgement.faults,
        }
        return json.dumps(whole)

    def show(self, console: Console) -> None:
        """What each gate found, then what is open, one line each."""
        table = Table("gate", f"open in {', '.join(self.templates)}", "excused", "seconds")
        for gate, opened, excused in self._rows():
            style = "red" if opened else "green"
            table.add_row(gate, f"[{style}]{opened}", str(excused), f"{self.seconds[gate]:.1f}")
        console.print(table)
        for finding in self.judgement.open:
            where = f"{finding.template}: {finding.resource}"
            console.print(
                f"[red]{escape(f'{finding.gate} {finding.rule}')}[/red]  {escape(where)}  {escape(finding.message)}"
            )
        for fault in self.judgement.faults:
            console.print(f"[red]exceptions[/red]  {escape(fault)}")

    def _rows(self) -> list[tuple[str, int, int]]:
        opened = Counter(finding.gate for finding in self.judgement.open)
        excused = Counter(finding.gate for finding in self.judgement.excused)
        return [(gate, opened[gate], excused[gate]) for gate in self.seconds]
