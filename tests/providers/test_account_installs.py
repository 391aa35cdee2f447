"""Installing for all projects of a person: where it goes, and out again whole."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType

import pytest

from bridge.errors import EXIT_CONFIG, Refused
from bridge.providers import (
    agy_install,
    claude_install,
    codex_install,
    copilot_install,
    cursor_install,
    droid_install,
    gemini_install,
    kimi_install,
    mid_turn,
    muse_install,
    opencode_install,
    pi_install,
    project_file,
    qwen_install,
)
from bridge.providers.scope import Scope, home_of, require_usual_place

TEMPLATES = Path(__file__).resolve().parents[2] / "packaging" / "plugins"
SKILLS = ".agents/skills"
# Each with the files that its own documents name for all projects.
PLACES: Mapping[str, tuple[ModuleType, set[str]]] = {
    "agy": (agy_install, {".gemini/config/hooks.json"}),
    "claude": (claude_install, {".claude/settings.json"}),
    "codex": (
        codex_install,
        {
            ".codex/config.toml",
            ".codex/hooks.json",
            f"{SKILLS}/agent-messages/SKILL.md",
            f"{SKILLS}/agentworks/SKILL.md",
        },
    ),
    "copilot": (
        copilot_install,
        {
            ".copilot/hooks/agentworks.json",
            ".copilot/mcp-config.json",
            ".copilot/skills/agentworks/SKILL.md",
        },
    ),
    "cursor": (cursor_install, {".cursor/hooks.json", ".cursor/mcp.json"}),
    "droid": (droid_install, {".factory/settings.json"}),
    "gemini": (
        gemini_install,
        {".gemini/commands/agentworks.toml", ".gemini/settings.json"},
    ),
    "kimi": (kimi_install, set()),
    "muse": (muse_install, {".config/muse/settings.json"}),
    "opencode": (
        opencode_install,
        {
            ".config/opencode/command/agentworks.md",
            ".config/opencode/plugin/agentworks.js",
        },
    ),
    "pi": (
        pi_install,
        {
            ".pi/agent/extensions/agentworks.js",
            ".pi/agent/mcp.json",
            ".pi/agent/skills/agent-messages/SKILL.md",
        },
    ),
    "qwen": (
        qwen_install,
        {".qwen/commands/agentworks.md", ".qwen/settings.json"},
    ),
}
# What the person has in their own files already.
OTHERS = {
    ".claude/settings.json": '{"model": "opus"}',
    ".codex/config.toml": 'model = "other"',
    ".config/muse/settings.json": '{\n\t"schema_version": 1,\n\t"theme": "dark"\n}\n',
    ".copilot/mcp-config.json": '{"mcpServers": {"other": {"command": "other"}}}\n',
    ".cursor/mcp.json": '{"mcpServers": {}}',
    ".factory/settings.json": '{"hooks": {"Stop": []}}\n',
    ".gemini/config/hooks.json": '{"mine": {}}\n',
    ".gemini/settings.json": '// mine\n{"theme": "dark",}\n',
    ".pi/agent/mcp.json": "{}",
    ".qwen/settings.json": '{"hooks": {}, /* mine */ "a": 1}\n',
}
every = pytest.mark.parametrize("name", PLACES)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    return folder


def files(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def put_in(name: str, home: Path) -> None:
    state = home.parent / "state"
    installer = PLACES[name][0]
    project_file.apply(installer.plan(home, state, TEMPLATES, Scope.ACCOUNT))


def take_out(name: str, home: Path) -> None:
    state = home.parent / "state"
    installer = PLACES[name][0]
    project_file.apply(installer.removal(home, state, TEMPLATES, Scope.ACCOUNT))


@every
def test_an_account_gets_the_documented_files_alone_and_loses_them_again(
    name: str, home: Path
) -> None:
    installer, names = PLACES[name]
    plan = installer.plan(home, home.parent / "state", TEMPLATES, Scope.ACCOUNT)
    assert files(home) == {}

    project_file.apply(plan)

    assert set(files(home)) == names
    assert set(os.listdir(home.parent)) <= {"home", "state"}
    take_out(name, home)
    assert list(home.iterdir()) == []


@every
def test_what_the_person_has_there_is_the_same_again_byte_for_byte(
    name: str, home: Path
) -> None:
    for file, text in OTHERS.items():
        (home / file).parent.mkdir(parents=True, exist_ok=True)
        (home / file).write_text(text)
    before = files(home)

    put_in(name, home)

    assert name == "kimi" or files(home) != before
    take_out(name, home)
    assert files(home) == before


@every
def test_the_hook_after_each_tool_call_goes_with_the_others(
    name: str, home: Path
) -> None:
    put_in(name, home)
    before = files(home)

    plan = mid_turn.plan(name, home, home.parent / "state", Scope.ACCOUNT)
    project_file.apply(plan)

    is_known = name in ("claude", "codex", "copilot", "cursor", "qwen")
    assert (files(home) != before) == is_known
    take_out(name, home)
    left = files(home)
    # The copy of what stood there before the second change.
    assert all(file.endswith(project_file.BACKUP_SUFFIX) for file in left)


@every
def test_the_second_time_nothing_is_left_to_do(name: str, home: Path) -> None:
    put_in(name, home)
    installer = PLACES[name][0]

    plan = installer.plan(home, home.parent / "state", TEMPLATES, Scope.ACCOUNT)

    assert plan.changes == ()
    assert not [note for note in plan.notes if "commits" in note]


@every
def test_a_project_and_the_account_have_each_their_own(name: str, home: Path) -> None:
    project = home.parent / "project"
    project.mkdir()
    put_in(name, home)
    there = files(home)
    installer, state = PLACES[name][0], home.parent / "state"

    project_file.apply(installer.plan(project, state, TEMPLATES))
    project_file.apply(installer.removal(project, state, TEMPLATES))

    assert files(home) == there
    assert files(project) == {}


def test_a_new_settings_file_of_muse_has_the_version_that_it_asks_for(
    home: Path,
) -> None:
    put_in("muse", home)

    written = json.loads((home / ".config/muse/settings.json").read_text())
    assert written["schema_version"] == 1
    assert set(written) == {"schema_version", "hooks"}


# ---- whose home it is -----------------------------------------------------------


@pytest.mark.parametrize("value", ["", "home", "/nowhere/at/all", "/dev/null"])
def test_a_home_that_is_none_is_refused(value: str) -> None:
    with pytest.raises(Refused, match="HOME") as refused:
        home_of({"HOME": value})

    assert refused.value.exit_code == EXIT_CONFIG


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_the_home_of_somebody_else_is_refused(home: Path) -> None:
    os.chown(home, 1234, 1234)

    with pytest.raises(Refused, match="another user"):
        home_of({"HOME": str(home)})


def test_a_host_that_looks_elsewhere_is_not_set_up_where_it_does_not_look(
    home: Path,
) -> None:
    usual = {"CODEX_HOME": str(home / ".codex"), "CLAUDE_CONFIG_DIR": ""}
    require_usual_place("codex", home, usual)
    require_usual_place("claude", home, usual)
    require_usual_place("cursor", home, {"CODEX_HOME": "/elsewhere"})

    with pytest.raises(Refused, match="CODEX_HOME makes codex look"):
        require_usual_place("codex", home, {"CODEX_HOME": "/elsewhere"})
