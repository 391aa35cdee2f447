"""The rules of the house, read from the code itself."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
BRIDGE = ROOT / "bridge"
MODULES = sorted(BRIDGE.rglob("*.py"))
HOOKS = sorted((ROOT / "hooks").glob("*.py"))
SINGLE_FILES = {
    "clock",
    "errors",
    "log",
    "paths",
    "config",
    "assets",
    "version",
    "peer",
}
SEES_SEVERAL_ROOMS = {"daemon", "driver", "cli", "__main__"}
PURE_STANDARD = {
    "__future__", "base64", "bisect", "collections", "dataclasses", "datetime",
    "difflib", "email", "enum", "functools", "hashlib", "itertools", "json", "math",
    "re", "string", "textwrap", "types", "typing", "unicodedata",
}  # fmt: skip


def names(paths: list[Path]) -> list[str]:
    return [str(path.relative_to(ROOT)) for path in paths]


def imports_of(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            module = node.module or ""
            if module == "bridge":
                yield from (f"bridge.{alias.name}" for alias in node.names)
            else:
                yield module


def room_of(module: str) -> str:
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else ""


def may_import(room: str, path: Path, module: str) -> bool:
    """One line for each rule of the architecture's section 4."""
    top = module.split(".")[0]
    if top == "asyncio":
        return False
    if room == "core":
        return (
            module.startswith("bridge.core") or top == "msgspec" or top in PURE_STANDARD
        )
    if top != "bridge" or room in SEES_SEVERAL_ROOMS:
        return True
    other = room_of(module)
    if room == "server":
        return (
            other in {"server", "clock", "errors", "log"} or module == "bridge.core.ids"
        )
    if path.parent == BRIDGE:
        return other in SINGLE_FILES | {"core"}
    return other in SINGLE_FILES | {"core", room, ""}


@pytest.mark.parametrize("path", MODULES, ids=names(MODULES))
def test_each_room_imports_only_what_the_house_allows(path: Path) -> None:
    relative = path.relative_to(BRIDGE)
    room = relative.parts[0].removesuffix(".py")
    wrong = [
        module for module in imports_of(path) if not may_import(room, path, module)
    ]

    assert not wrong, f"{relative} imports {wrong}"


@pytest.mark.parametrize("path", HOOKS, ids=names(HOOKS))
def test_hooks_import_only_the_standard_library(path: Path) -> None:
    wrong = [
        module
        for module in imports_of(path)
        if module.split(".")[0] not in sys.stdlib_module_names
    ]

    assert not wrong


@pytest.mark.parametrize("path", MODULES + HOOKS, ids=names(MODULES + HOOKS))
def test_a_module_says_what_it_owns_in_at_most_400_lines(path: Path) -> None:
    text = path.read_text()
    if not text.strip():
        return

    assert len(text.splitlines()) <= 400
    assert ast.get_docstring(ast.parse(text)), f"{path} has no docstring"


@pytest.mark.parametrize("path", MODULES + HOOKS, ids=names(MODULES + HOOKS))
def test_no_function_is_longer_than_50_lines(path: Path) -> None:
    long = [
        f"{node.name} {node.end_lineno - node.lineno + 1}"
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.end_lineno is not None
        and node.end_lineno - node.lineno + 1 > 50
    ]

    assert not long


def test_the_daemon_only_wires() -> None:
    daemon = BRIDGE / "daemon.py"

    assert len(daemon.read_text().splitlines()) <= 200


def test_the_c_client_stays_under_350_lines() -> None:
    assert len((ROOT / "hooks" / "ask.c").read_text().splitlines()) < 350


@pytest.mark.parametrize("path", MODULES, ids=names(MODULES))
def test_no_module_has_a_name_that_says_nothing(path: Path) -> None:
    empty_words = {"utils", "util", "common", "helpers", "manager", "handler", "misc"}

    assert path.stem not in empty_words


def test_every_test_that_a_comment_names_exists() -> None:
    known = {
        name
        for path in (ROOT / "tests").rglob("test_*.py")
        for name in re.findall(r"def (test_\w+)", path.read_text())
    }
    named = {
        name
        for path in [*MODULES, *HOOKS, ROOT / "hooks" / "ask.c"]
        for name in re.findall(r"\((?:see )?(test_\w+)\)", path.read_text())
    }

    assert named - known == set()


@pytest.mark.parametrize("path", MODULES, ids=names(MODULES))
def test_no_work_in_a_thread_is_abandoned(path: Path) -> None:
    """A commit that goes on after its caller gave up is a yes that nobody heard."""
    calls = (
        n for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, ast.Call)
    )
    words = {word.arg for call in calls for word in call.keywords}

    assert not words & {"abandon_on_cancel", "cancellable"}
