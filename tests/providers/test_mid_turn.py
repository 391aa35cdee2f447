"""The hook after each tool call: there where it was wished, and gone with the rest."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType

import pytest

from bridge.errors import Refused
from bridge.providers import (
    claude_install,
    codex_install,
    copilot_install,
    cursor_install,
    mid_turn,
    qwen_install,
)
from bridge.providers.project_file import apply

ROOT = Path(__file__).resolve().parents[2]
TEMPLATES = ROOT / "packaging" / "plugins"
FILES = {
    "claude": ".claude/settings.local.json",
    "codex": ".codex/hooks.json",
    "copilot": ".github/hooks/agentworks-mid-turn.json",
    "cursor": ".cursor/hooks.json",
    "qwen": ".qwen/settings.json",
}
INSTALLERS = {
    "claude": claude_install,
    "codex": codex_install,
    "copilot": copilot_install,
    "cursor": cursor_install,
    "qwen": qwen_install,
}
EVENTS = {
    "claude": "PostToolUse",
    "codex": "PostToolUse",
    "copilot": "postToolUse",
    "cursor": "postToolUse",
    "qwen": "PostToolUse",
}
EVERY = pytest.mark.parametrize(("provider", "installer"), INSTALLERS.items())


def lines(project: Path, provider: str) -> list[str]:
    file = project / FILES[provider]
    document = json.loads(file.read_text()) if file.exists() else {}
    groups = document.get("hooks", {}).get(EVENTS[provider], [])
    return [hook["command"] for group in groups for hook in group.get("hooks", [group])]


@EVERY
def test_a_project_gets_one_line_once(
    tmp_path: Path, provider: str, installer: ModuleType
) -> None:
    state = tmp_path / "state"
    apply(installer.plan(tmp_path, state, TEMPLATES))
    assert lines(tmp_path, provider) == []

    apply(mid_turn.plan(provider, tmp_path, state))

    ask = f"'{state}/bin/ask'"
    assert lines(tmp_path, provider) == [
        f"[ -x {ask} ] || exit 0; exec {ask} hook {provider} {EVENTS[provider]}"
    ]
    assert mid_turn.plan(provider, tmp_path, state).changes == ()
    assert not installer.plan(tmp_path, state, TEMPLATES).changes


@EVERY
def test_it_goes_with_our_other_hooks_and_leaves_those_of_others(
    tmp_path: Path, provider: str, installer: ModuleType
) -> None:
    state = tmp_path / "state"
    file = tmp_path / FILES[provider]
    file.parent.mkdir(parents=True)
    hook = {"type": "command", "command": "x"}
    entry = hook if provider in ("copilot", "cursor") else {"hooks": [hook]}
    theirs = json.dumps({"hooks": {EVENTS[provider]: [entry]}})
    file.write_text(theirs)
    apply(installer.plan(tmp_path, state, TEMPLATES))
    apply(mid_turn.plan(provider, tmp_path, state))
    assert lines(tmp_path, provider)[0] == "x"

    apply(installer.removal(tmp_path, state, TEMPLATES))

    assert json.loads(file.read_text()) == json.loads(theirs)


@EVERY
def test_a_file_that_does_not_parse_is_refused_with_its_line(
    tmp_path: Path, provider: str, installer: ModuleType
) -> None:
    file = tmp_path / FILES[provider]
    file.parent.mkdir(parents=True)
    file.write_text('{\n "hooks": {,}\n}')

    with pytest.raises(Refused, match="line 2"):
        mid_turn.plan(provider, tmp_path, tmp_path / "state")


def test_a_provider_without_such_a_hook_gets_nothing(tmp_path: Path) -> None:
    assert mid_turn.plan("script", tmp_path, tmp_path / "state").changes == ()
