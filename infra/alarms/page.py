"""`python -m infra.alarms.page` writes docs/reference/alarms.md, docs/reference/metrics.md and the index of the runbooks from the declarations."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from infra import prices
from infra.alarms.alarm import Alarm, Both
from infra.alarms.canary import canary_alarm
from infra.alarms.door import door_alarms
from infra.alarms.guides import INDEX, index
from infra.alarms.metric import Expression, own
from infra.alarms.queues import Deployed
from infra.alarms.senders import PART_COUNTER, RELAY, lookout_alarms, reader_alarms, sweeper_alarms
from infra.alarms.stores import cache_alarms, jobs_table_alarms, table_alarms
from infra.alarms.worker import worker_alarms
from infra.stage.alarm_settings import AlarmSettings
from infra.stage.choices import CANARY
from infra.stage.settings import ROOT
from shared.metrics import KINDS, Writer, most_metrics

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from shared.worker import Worker

REFERENCE = ROOT / "docs" / "reference"
ALARMS, METRICS = REFERENCE / "alarms.md", REFERENCE / "metrics.md"
DOOR_TIMEOUT = timedelta(seconds=8)  # of `infra/constructs/front_door.py`

_ALARMS_HEAD = """# Alarms

What rings, when, and what to open then. Each alarm is data in `infra/alarms/`, tells the topic of the output `AlarmTopic`, and
says in its description how urgent it is (*page*: somebody, now; *warn*: somebody, in working hours) and which runbook to open.
Thresholds are settings (`infra/stage/alarm_settings.py`), or follow from a declaration. This page is written by
`python -m infra.alarms.page`; the thresholds of a worker are those of `payments`.

- **One alarm a worker, not one a job type**: what jobs say of themselves is written once more for the whole service.
- **A share needs a floor.** A few failures happen every day, and in a quiet hour each of them is a large share.
- **A baseline is a band** that CloudWatch learns. An expression over metrics of several periods would be no baseline: what
  CloudWatch makes of it is not documented, and CDK's `MathExpression` puts its own period on all of them.
- **Missing data** is fine for what speaks only when there is something to tell, and breaches for what speaks every minute
  whatever happens. Of DynamoDB's metrics CloudWatch takes it for no news, whatever an alarm says, so theirs is filled with zero.
- **A dead letter** rings for every arrival, also while others lie there and while somebody reads them. It rings anew once it was
  silent: a second one within three minutes of the first is one alarm.
- **Both windows** of a burn rate are alarms of their own that tell nobody; what tells is a composite of them.

Every alarm of the template is played to ring and to be silent again (`watch/scenarios.py`, run by `tests/watch`), and none
rings on a healthy day.
"""

_METRICS_HEAD = """# Metrics

What the product writes of itself, in CloudWatch's embedded metric format, namespace `Tahan`. The list is `shared/metrics.py`; a
name that is not in it is refused by every test. This page is written by `python -m infra.alarms.page`.

Each metric is written under two sets of dimensions: `service` alone, which alarms and dashboard use, and `service` with
`job_type` (`none` for what is about no job type). Ids, owners, tenants and keys are never dimensions; they stand in the log lines.
"""


def groups(worker: Worker, settings: AlarmSettings) -> dict[str, Sequence[Alarm | Both]]:
    """All alarms there are, by what they are of."""
    names = Deployed("source", "dead-letters", "function")
    return {
        "A worker": worker_alarms(worker, names, settings),
        "The canary, beside those of a worker": [canary_alarm(own(CANARY, "latency"), settings)],
        "The front door": door_alarms("api", "function", DOOR_TIMEOUT, settings),
        "The outbox relay": reader_alarms(RELAY, "function", "failures", settings),
        "The part counter": reader_alarms(PART_COUNTER, "function", "failures", settings),
        "The outbox sweeper": sweeper_alarms("function", settings),
        "The lookout": lookout_alarms("function"),
        "The job records": jobs_table_alarms("jobs", settings),
        "Every other table": table_alarms("Name", "table", settings),
        "The cache": cache_alarms("cache", settings),
    }


def alarms_page(worker: Worker) -> str:
    """The page of alarms."""
    found = groups(worker, AlarmSettings())
    parts = [_ALARMS_HEAD, _costs(found)]
    for title, alarms in found.items():
        rows = "\n".join(map(_row, alarms))
        head = "| alarm | urgency | rings when | threshold | setting | points | missing | runbook |\n|---|---|---|---|---|---|---|---|"
        parts.append(f"## {title}\n\n{head}\n{rows}\n")
    return "\n".join(parts)


def metrics_page() -> str:
    """The page of metrics."""
    parts = [
        _METRICS_HEAD,
        (
            f"A worker of one job type has at most {most_metrics(1)} metrics, one of ten {most_metrics(10)}, however many"
            f" tenants and jobs there are; most of them are never written on a good day. CloudWatch bills"
            f" {prices.METRIC_MONTH:.2f} US dollars a month for each that is written.\n"
        ),
    ]
    for writer in Writer:
        rows = [
            f"| `{kind.name}` | {kind.unit.value} | {'yes' if kind.by_job_type else 'no'} | {kind.sentence} |"
            for kind in KINDS.values()
            if writer in kind.writers
        ]
        title = writer.value if writer is Writer.WORKER else f"service `{writer.value}`"
        head = "| metric | unit | by job type | what it says |\n|---|---|---|---|"
        parts.append(f"## Written by {title}\n\n{head}\n" + "\n".join(rows) + "\n")
    return "\n".join(parts)


def billed(alarms: Iterable[Alarm | Both]) -> float:
    """US dollars a month for alarms."""
    return sum(_bill(alarm) for alarm in alarms)


def _bill(alarm: Alarm | Both) -> float:
    if isinstance(alarm, Both):
        return prices.COMPOSITE_MONTH + _bill(alarm.long) + _bill(alarm.short)
    if alarm.band is not None:
        return prices.ALARM_METRIC_MONTH * prices.BAND_METRICS
    return prices.ALARM_METRIC_MONTH * (len(alarm.watched.metrics) if isinstance(alarm.watched, Expression) else 1)


def _costs(found: dict[str, Sequence[Alarm | Both]]) -> str:
    lines = [
        f"| {title} | {sum(3 if isinstance(each, Both) else 1 for each in alarms)} | {billed(alarms):.2f} |"
        for title, alarms in found.items()
    ]
    note = "CloudWatch bills each metric of an alarm, and a template holds 500 resources, of which each alarm is one."
    return f"{note}\n\n| of | alarms | US dollars a month |\n|---|---|---|\n" + "\n".join(lines) + "\n"


def _row(alarm: Alarm | Both) -> str:
    if isinstance(alarm, Both):
        threshold = f"{alarm.long.threshold:.4g} % in both windows"
        points, missing, sentence = "both", "-", alarm.sentence
    else:
        sentence, missing = alarm.sentence, alarm.missing.value
        sign = "at least" if alarm.at_least else "over"
        threshold = f"{alarm.band:g} spreads" if alarm.band is not None else f"{sign} {alarm.threshold:.10g}"
        points = f"{alarm.points[0]} of {alarm.points[1]} x {alarm.watched.period.total_seconds() / 60:g} min"
    runbook = f"[{alarm.runbook.value}](../runbooks/{alarm.runbook.value}.md)"
    cells = (alarm.name, alarm.severity.value, sentence, threshold, alarm.setting, points, missing, runbook)
    return f"| {' | '.join(cells)} |"


def main() -> None:
    """Write the three pages."""
    from functions.payments import WORKER  # noqa: PLC0415 - the page alone shows a worker of the product

    ALARMS.write_text(alarms_page(WORKER), encoding="utf-8")
    METRICS.write_text(metrics_page(), encoding="utf-8")
    INDEX.write_text(index(groups(WORKER, AlarmSettings())), encoding="utf-8")


if __name__ == "__main__":
    main()
