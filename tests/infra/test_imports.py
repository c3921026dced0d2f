"""An asset holds the modules that its entry imports, and no others."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from infra.packaging.imports import sources_of
from shared.errors import DeclarationError

if TYPE_CHECKING:
    from pathlib import Path


def house(root: Path, **modules: str) -> Path:
    (root / "functions").mkdir()
    for name, code in {"__init__": "", **modules}.items():
        path = root / "functions" / f"{name.replace('__of__', '/')}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(code)
    return root


HANDLER = "def handler(event, context): ...\n"


def names(root: Path, entry: str = "functions.payments") -> list[str]:
    return [path.relative_to("functions").as_posix() for path in sources_of(entry, root)]


def test_what_the_entry_imports_comes_along_with_what_that_imports(tmp_path: Path) -> None:
    code = "import boto3\nfrom functions import prices\nfrom functions.orders import ORDERS\nimport functions.text as t"
    root = house(
        tmp_path, payments=HANDLER + code, prices="from .rates import RATE", rates="", orders="", text="", users=""
    )
    assert names(root) == ["__init__.py", "orders.py", "payments.py", "prices.py", "rates.py", "text.py"]


def test_an_import_inside_a_function_counts_and_one_for_types_does_not(tmp_path: Path) -> None:
    code = "def f():\n    import functions.late\nif TYPE_CHECKING:\n    from functions.types import T"
    assert names(house(tmp_path, payments=HANDLER + code, late="", types="")) == [
        "__init__.py",
        "late.py",
        "payments.py",
    ]


def test_two_modules_may_import_each_other(tmp_path: Path) -> None:
    root = house(tmp_path, payments=HANDLER + "import functions.b", b="import functions.payments")
    assert names(root) == ["__init__.py", "b.py", "payments.py"]


def test_a_package_of_functions_comes_with_its_init(tmp_path: Path) -> None:
    (tmp_path / "functions").mkdir()
    (tmp_path / "functions" / "payments").mkdir()
    for name in ("__init__.py", "payments/__init__.py", "payments/steps.py"):
        (tmp_path / "functions" / name).write_text(HANDLER)
    assert names(tmp_path, "functions.payments.steps") == ["__init__.py", "payments/steps.py"]


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("from functions.registry import WORKERS", "import the one job or worker it needs"),
        ("from functions import registry", "import the one job or worker it needs"),
        ("import local.outside.payment_provider", "move what it needs to shared/"),
        ("from infra.plan import camel", "move what it needs to shared/"),
        ("import watch.alarms", "move what it needs to shared/"),
        ("import audit.findings", "move what it needs to shared/"),
        ("from reference import pages", "move what it needs to shared/"),
        ("import functions.absent", "functions.absent has no file"),
    ],
)
def test_an_import_that_would_fail_in_the_function_is_refused(tmp_path: Path, code: str, words: str) -> None:
    with pytest.raises(DeclarationError, match=words):
        sources_of("functions.payments", house(tmp_path, payments=HANDLER + code, registry=""))


def test_a_worker_without_a_module_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DeclarationError, match="name the worker after its module"):
        sources_of("functions.invoices", house(tmp_path))


@pytest.mark.parametrize("code", ["", "def handle(event, context): ...", "if 0:\n    handler = 1", "import handler"])
def test_a_module_without_a_handler_is_refused(tmp_path: Path, code: str) -> None:
    with pytest.raises(DeclarationError, match=r"functions\.payments has no `handler` for Lambda to call"):
        names(house(tmp_path, payments=code))


@pytest.mark.parametrize("code", ["handler = consume(WORKER)", "handler: object = 1", HANDLER])
def test_a_handler_is_a_function_or_a_value(tmp_path: Path, code: str) -> None:
    assert names(house(tmp_path, payments=code)) == ["__init__.py", "payments.py"]
