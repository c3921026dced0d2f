"""Letters that were found: whose desks are looked at, what is chosen there, and how a letter is told in a row and in full."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from functions.registry import JOB_TYPES
from ops.exits import CommandError, Exit
from ops.explained import explained
from ops.jobs.payloads import shown_payload
from ops.letters.desk import Desk
from ops.tables import failure_of, text_of
from shared.dead_letter import Death, folded_in
from shared.delivery import DEAD_LETTER_ATTRIBUTE
from shared.errors import Malformed, NewerVersion
from shared.pipeline.run import read_run

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ops.letters.dossier import Dossier
    from ops.letters.selection import Selection
    from ops.stack.deployed import Deployed
    from ops.stack.together import Mapper
    from ops.tools import Tools

MOST = 10_000  # letters of a worker that are looked through
TOLD = {
    Death.FAILED: "failed",
    Death.NEVER_ATTEMPTED: "never attempted",
    Death.SILENT: "silent",
    Death.ENDED: "ended well",
}
MEANS = {
    Death.FAILED: "the consumer sent it, with its reason",
    Death.NEVER_ATTEMPTED: "SQS moved it, and no attempt was ever made: throttled, or killed before the claim",
    Death.SILENT: "SQS moved it after attempts that ended without a word",
    Death.ENDED: "SQS moved it, and its job had ended: a duplicate",
}


def demand_words(selection: Selection) -> None:
    """Refuse to change what nobody has named.

    Raises:
        CommandError: with what can be said.
    """
    if selection.is_empty:
        message = "Say which letters: an ID, --group, --job-type, --reason, --since or --until, or --all."
        raise CommandError(message, Exit.REFUSED)


def found_by(
    tools: Tools, stack: Deployed, selection: Selection, worker: str | None, most: int
) -> tuple[list[tuple[Desk, Dossier]], bool]:
    """The letters that are chosen, all where nothing chooses; of all workers, or of one. And whether there may be more.

    At most `most` letters a worker are read.

    Raises:
        CommandError: there is no such worker, or AWS does not answer, or refuses.
    """
    found: list[tuple[Desk, Dossier]] = []
    cut = False
    with explained(), tools.side_by_side() as mapper:
        for desk in desks(worker, tools, stack, mapper):
            with tools.busy(f"Reading the dead letters of {desk.worker} ..."):
                survey = desk.look(most)
            cut = cut or survey.cut
            alone = replace(desk, side_by_side=map)  # for whoever goes on with it
            found += [
                (alone, dossier) for dossier in survey.dossiers if selection.is_empty or selection.chooses(dossier)
            ]
    return found, cut


def desks(worker: str | None, tools: Tools, stack: Deployed, side_by_side: Mapper = map) -> list[Desk]:
    """The desk of this worker, or those of all.

    Raises:
        CommandError: there is no such worker.
    """
    workers = stack.workers() if worker is None else stack.workers(worker)
    records = tools.operator(stack.jobs_table)
    return [
        Desk(
            each.name,
            tools.dead_letters(stack.queue_of(each.name), stack.dead_letters_of(each.name)),
            records,
            tools.clock,
            side_by_side,
        )
        for each in workers
    ]


def one_letter(found: Sequence[tuple[Desk, Dossier]], name: str) -> tuple[Desk, Dossier]:
    """The one letter that was found.

    Raises:
        CommandError: there is none, or more than one.
    """
    if not found:
        message = f"There is no dead letter {name!r} at this moment: somebody else may be looking at it for a minute."
        raise CommandError(message, Exit.ABSENT)
    if len(found) > 1:
        names = "".join(f"\n  {desk.worker} {dossier.delivery.message_id}" for desk, dossier in found)
        message = f"{name!r} may mean any of these, say more of it:{names}"
        raise CommandError(message, Exit.REFUSED)
    return found[0]


def row_of(dossier: Dossier) -> dict[str, object]:
    """A letter in a list; nothing personal."""
    return {
        "message_id": dossier.delivery.message_id,
        "worker": dossier.worker,
        "job_type": dossier.job_type,
        "died_at": text_of(dossier.died_at),
        "came_by": dossier.kind.value,
        "reason": dossier.reason,
        "signature": dossier.signature,
        "attempts": dossier.attempts,
        "deaths": dossier.death,
        "operation_id": dossier.operation,
    }


def described(dossier: Dossier, *, whole: bool) -> dict[str, object]:
    """All that is known of a letter. Key and payload may hold what is personal: only if `whole`, and masked fields never."""
    view, facts, letter = dossier.view, dossier.facts, dossier.delivery
    own = {name for name in letter.attributes if name != DEAD_LETTER_ATTRIBUTE} | folded_in(letter).keys()
    private: dict[str, object] = {}
    if whole:
        message = dossier.message
        # A body that nobody can read may hold anything: its size and its hash tell it from others.
        private = {
            "idempotency_key": None if message is None else message.idempotency_key,
            "payload": None if message is None else shown_payload(message.job_type, message.payload),
        }
    return {
        **row_of(dossier),
        "came_by": f"{dossier.kind.value}: {MEANS[dossier.kind]}",
        "problem": dossier.problem,
        "error": facts.get("error"),
        "dependency": facts.get("dependency"),
        "first_failure": facts.get("first_failure"),
        "last_failure": facts.get("last_failure"),
        "received": letter.receive_count,
        "sent_at": text_of(letter.sent_at),
        "group": letter.group,
        "attributes": ", ".join(sorted(own)) or None,
        "resource": _resource(dossier),
        "trace_id": dossier.trace,
        "xray": letter.trace,
        "job_id": facts.get("job_id"),
        "job_stands": None if view is None else view.status.value,
        "replays": None if view is None else view.replays,
        "replayed_at": None if view is None or view.replayed is None else text_of(view.replayed.at),
        "replayed_by": None if view is None or view.replayed is None else view.replayed.by,
        "body_bytes": len(letter.body.encode(errors="surrogatepass")),
        "body_sha256": dossier.body_hash,
        **private,
        "failures": [] if view is None else [failure_of(failure) for failure in view.failures],
    }


def _resource(dossier: Dossier) -> str | None:
    """What the job works on, as log lines name it: hashes of its lock keys."""
    try:
        run = read_run(dossier.delivery, JOB_TYPES, datetime.max.replace(tzinfo=UTC))
    except (Malformed, NewerVersion):
        return None
    return " ".join(run.resources) or None
