"""Dead letters: their groups, a page of them, and the dossier of one."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from ops.console.deeds import Underway
from ops.console.looks import SAMPLE, letter, look
from ops.exits import CommandError, Exit
from ops.letters.dossier import grouped
from ops.letters.found import MOST, TOLD, described, row_of
from ops.letters.selection import Selection
from shared.errors import Unavailable
from shared.strict_json import indented

if TYPE_CHECKING:
    from collections.abc import Sequence

    from werkzeug.wrappers import Response

    from ops.console.visit import Visit
    from ops.letters.dossier import Group

ON_A_PAGE = 50
MOST_GROUPS = 200
WORDS = ("worker", "job_type", "reason", "group", "since", "until")


def letters(visit: Visit) -> Response:
    """Groups, and the letters that are chosen."""
    worker = visit.word("worker")
    most = MOST if visit.word("most") == "all" else SAMPLE
    anew = visit.word("again") is not None and not visit.is_live
    deed = look(visit, Selection(), worker, most, anew=anew)
    if deed.found is None:
        return waits(visit, deed)
    selection = chosen(visit)
    found = [dossier for _, dossier in deed.found.found]
    shown = [each for each in found if selection.is_empty or selection.chooses(each)]
    page = visit.whole("page", 1, MOST)
    last = max(1, -(-len(shown) // ON_A_PAGE))
    page = min(max(page, 1), last)
    words = {name: given for name in WORDS if (given := visit.word(name)) is not None}
    if most == MOST:
        words["most"] = "all"
    return visit.page(
        "letters",
        groups=[(_group(group), _link_of(group)) for group in grouped(found)[:MOST_GROUPS]],
        rows=[{**row_of(each), "told": TOLD[each.kind]} for each in shown[(page - 1) * ON_A_PAGE : page * ON_A_PAGE]],
        chosen=len(shown),
        read=len(found),
        there=_there(visit, worker),
        cut=deed.found.cut,
        words=words,
        query=urlencode(words),
        page=page,
        last=last,
        is_whole=most == MOST,
        is_chosen=not selection.is_empty,
        lines=deed.lines,
        seconds_ago=visit.tools.clock.monotonic() - deed.found.at,
        workers=[each.name for each in visit.stack.workers()],
    )


def one(visit: Visit, worker: str, name: str) -> Response:
    """The dossier of one letter."""
    found = letter(visit, worker, name)
    if isinstance(found, Underway):
        return waits(visit, found)
    _, dossier = found
    whole = visit.word("payload") is not None
    fields = dict(described(dossier, whole=whole))
    failures = fields.pop("failures")
    if whole and fields.get("payload"):
        fields["payload"] = pretty(str(fields["payload"]))
    return visit.page(
        "letter", facts=fields, failures=failures, worker=worker, name=name, whole=whole, operation=dossier.operation
    )


def waits(visit: Visit, deed: Underway) -> Response:
    """A page that says that something takes its time, and turns into what it has found.

    Raises:
        CommandError: it has not gone well.
    """
    if deed.problem is not None:
        visit.house.looks.clear()
        raise CommandError(deed.problem, deed.status)
    return visit.page("waits", over=False, title=deed.title)


def chosen(visit: Visit) -> Selection:
    """The selection that is said in the address.

    Raises:
        CommandError: a word of it is wrong.
    """
    ids = tuple(each.strip() for each in visit.request.args.getlist("id") if each.strip())
    group, job_type, reason = (visit.word(name) for name in ("group", "job_type", "reason"))
    since, until = (_moment(visit.word(name)) for name in ("since", "until"))
    return Selection(ids, group, job_type, reason, since, until, visit.word("all") is not None)


def pretty(text: str) -> str:
    """JSON in lines, with every number's digits, where it is JSON."""
    try:
        return indented(text)
    except (ValueError, ArithmeticError, RecursionError):
        return text


def _moment(text: str | None) -> datetime | None:
    """A time with its zone; browsers give none with their own fields, which mean UTC here.

    Raises:
        CommandError: it is none.
    """
    if text is None:
        return None
    try:
        found = datetime.fromisoformat(text)
    except ValueError as error:
        message = f"{text!r}: give a time like 2026-12-24T18:00:00+01:00."
        raise CommandError(message, Exit.REFUSED) from error
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


def _there(visit: Visit, worker: str | None) -> int | None:
    """About how many there are, as SQS guesses; None where it does not say."""
    names: Sequence[str] = [each.name for each in visit.stack.workers()] if worker is None else [worker]
    try:
        return sum(visit.house.running.depth(name).dead for name in names)
    except Unavailable:
        return None


def _group(group: Group) -> dict[str, Any]:
    return {
        "letters": group.letters,
        "worker": group.worker,
        "job_type": group.job_type,
        "told": TOLD[group.kind],
        "reason": group.reason,
        "signature": group.signature,
        "error": group.error or "",
        "dependency": group.dependency or "",
        "first": group.first,
        "last": group.last,
    }


def _link_of(group: Group) -> str:
    return urlencode(
        {"worker": group.worker, "job_type": group.job_type, "reason": group.reason, "group": group.signature}
    )


ROUTES = (("/letters", letters, "GET"), ("/letters/<worker>/<name>", one, "GET"))
