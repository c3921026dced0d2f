"""Refreshing the cached view of a user: after a change it is there at once, and an older job that comes late changes nothing."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Annotated

from pydantic import BaseModel, Field

from functions.views.shown import chosen, versioned
from shared.consumer import consume
from shared.errors import DeadLetter, RetryLater
from shared.job import job
from shared.payload import Payload
from shared.retry import Retry
from shared.table import Table
from shared.worker import Worker

if TYPE_CHECKING:
    from collections.abc import Mapping

    from shared.caching.store import Loaded
    from shared.limits import Value
    from shared.unit_of_work import UnitOfWork

USERS = Table("users", key="user_id")
ATTEMPTS = 5
FIELDS = ("user_id", "name", "email", "locale")
ENTRY = "user"  # the name of the one entry under a user's tag


class RefreshUserCache(Payload):
    """Bring the cached view of a user to this version of the user, or a later one."""

    user_id: Annotated[str, Field(min_length=1, max_length=200)]
    version: Annotated[int, Field(ge=1)]


class UserRefreshed(BaseModel):
    """What the cache holds now, if it held the user before; without a version the user is gone."""

    user_id: str
    version: int | None = None


@job(
    "refresh-user-cache",
    version=1,
    timeout=timedelta(seconds=10),  # one read, one commit
    max_latency=timedelta(minutes=1),  # a cached user is a minute old anyway before it is refreshed by a reader
    # The change that a job announces is seconds away, if it is not there; after a minute it will not come.
    retry=Retry(max_attempts=ATTEMPTS, base=timedelta(seconds=2), cap=timedelta(seconds=30)),
    uses=(USERS.read,),
)
def refresh_user_cache(payload: RefreshUserCache, work: UnitOfWork) -> UserRefreshed:
    """Put the user as it is now into the cache; no lock, since versions tell old from new.

    The user is read here and demanded unchanged by the commit, so an old job that comes late refreshes to the newest version.
    """
    user = work.read(USERS, payload.user_id)
    if user is None:
        work.invalidate(user_tag(payload.user_id), version=payload.version)
        return UserRefreshed(user_id=payload.user_id)
    if user.version < payload.version:
        message = f"the user is at version {user.version}, the job was sent for {payload.version}"
        if work.attempt >= ATTEMPTS:
            raise DeadLetter("change-not-there", message)
        raise RetryLater(message)
    work.refresh(user_tag(payload.user_id), ENTRY, shown_user(user, user.version))
    return UserRefreshed(user_id=payload.user_id, version=user.version)


def user_tag(user_id: str) -> str:
    """The cache tag of a user, which holds its owner: the user."""
    return f"user/{user_id}"


def shown_user(user: Mapping[str, Value], version: int) -> Loaded:
    """What a user sees of itself."""
    return versioned(version, chosen(user, FIELDS))


# As many as one cache and one table take without noticing; a burst of changes is done at this pace.
WORKER = Worker("users", jobs=(refresh_user_cache,), max_concurrency=5)
handler = consume(WORKER)
