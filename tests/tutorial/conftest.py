"""One copy of the tree for the tests of a session, in which the tutorial's first command has written a worker."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.tutorial.page import Run, steps
from tests.tutorial.tree import Tree

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tree]:
    """The copy."""
    copied = Tree(tmp_path_factory.mktemp("tutorial") / "tree")
    first = next(steps())
    assert first == Run(("./tahan new worker parcels --job weigh-parcel",))
    list(copied.do(first))
    yield copied
    copied.close()
