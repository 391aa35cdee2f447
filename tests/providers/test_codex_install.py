"""Installing into a project for Codex, and taking it out again."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from msgspec.structs import replace

from bridge.errors import Refused
from bridge.providers import codex_install, project_file
from bridge.providers.codex_install import CONFIG, HOOKS, MESSAGING_SKILL, SKILL
from bridge.providers.project_file import Plan
from tests.providers.documents import OBJECTS, texts

TEMPLATES = Path(__file__).resolve().parents[2] / "packaging" / "plugins"
EVENTS = ["SessionStart", "UserPromptSubmit", "Stop", "SessionEnd"]
THEIRS = {"hooks": [{"type": "command", "command": "lint"}]}


def plan(project: Path) -> Plan:
    """Without the package, which is no part of the project."""
    whole = codex_install.plan(project, project / "state", TEMPLATES)
    return replace(whole, package=())


def removal(project: Path) -> Plan:
    return codex_install.removal(project, project / "state", TEMPLATES)


def write(project: Path, name: str, text: str) -> Path:
    path = project / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode())
    return path


def hooks(project: Path) -> dict[str, list[object]]:
    found: dict[str, list[object]] = json.loads((project / HOOKS).read_text())["hooks"]
    return found


def test_a_new_project_gets_four_files_and_loses_them_again(tmp_path: Path) -> None:
    assert codex_install.plan(tmp_path, tmp_path / "state", TEMPLATES).changes

    project_file.apply(plan(tmp_path))

    assert not codex_install.plan(tmp_path, tmp_path / "state", TEMPLATES).changes
    assert list(hooks(tmp_path)) == EVENTS
    assert tomllib.loads((tmp_path / CONFIG).read_text()) == {
        "mcp_servers": {
            "agentworks": {
                "command": str(tmp_path / "state" / "bin" / "pipe"),
                "args": ["mcp", "codex"],
            }
        }
    }
    assert "name: agentworks\n" in (tmp_path / SKILL).read_text()
    assert "name: agent-messages\n" in (tmp_path / MESSAGING_SKILL).read_text()

    project_file.apply(removal(tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_planning_changes_nothing(tmp_path: Path) -> None:
    plan(tmp_path)
    removal(tmp_path)

    assert list(tmp_path.iterdir()) == []


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(texts(OBJECTS))
def test_hooks_of_others_survive_and_come_back(tmp_path: Path, text: str) -> None:
    path = write(tmp_path, HOOKS, text)
    try:
        planned = plan(tmp_path)
    except Refused as refused:
        assert refused.code == "file_not_strict"  # noqa: PT017 - either way is right
        return
    project_file.apply(planned)

    assert plan(tmp_path).changes == ()
    project_file.apply(removal(tmp_path))
    assert path.read_bytes() == text.encode()


def test_our_groups_are_appended_since_codex_trusts_by_place(tmp_path: Path) -> None:
    text = json.dumps({"hooks": {"Stop": [THEIRS, THEIRS]}}, indent=2)
    write(tmp_path, HOOKS, text)

    project_file.apply(plan(tmp_path))

    assert hooks(tmp_path)["Stop"][:2] == [THEIRS, THEIRS]
    assert len(hooks(tmp_path)["Stop"]) == 3
    assert (tmp_path / HOOKS).read_text().startswith(text[: text.rindex("]") - 8])


def test_a_hook_whose_timeout_was_changed_is_still_ours(tmp_path: Path) -> None:
    project_file.apply(plan(tmp_path))
    path = tmp_path / HOOKS
    path.write_text(path.read_text().replace('"timeout": 10', '"timeout": 60'))

    assert plan(tmp_path).changes == ()
    project_file.apply(removal(tmp_path))
    assert not path.exists()


def test_others_beside_and_after_ours_stay_and_the_person_is_told(
    tmp_path: Path,
) -> None:
    project_file.apply(plan(tmp_path))
    document = json.loads((tmp_path / HOOKS).read_text())
    document["hooks"]["Stop"][0]["hooks"].insert(0, THEIRS["hooks"][0])
    document["hooks"]["SessionEnd"].append(THEIRS)
    write(tmp_path, HOOKS, json.dumps(document, indent=2))

    taken_out = removal(tmp_path)
    project_file.apply(taken_out)

    assert hooks(tmp_path) == {"Stop": [THEIRS], "SessionEnd": [THEIRS]}
    assert "trust the hooks again" in taken_out.notes[0]


@pytest.mark.parametrize(
    "text",
    [
        '[mcp_servers.agentworks]\ncommand = "theirs"\n',
        "mcp_servers.agentworks.command = 'theirs'\n",
        "[mcp_servers]\nagentworks = 1\n",
    ],
)
def test_a_tool_server_of_our_name_is_left_alone(tmp_path: Path, text: str) -> None:
    write(tmp_path, CONFIG, text)

    with pytest.raises(Refused) as refused:
        plan(tmp_path)

    assert refused.value.code == "name_taken"
    assert removal(tmp_path).changes == ()


def test_the_persons_own_line_in_our_table_stays_and_goes_with_it(
    tmp_path: Path,
) -> None:
    path = write(tmp_path, CONFIG, 'model = "x"\n')
    project_file.apply(plan(tmp_path))
    path.write_text(
        path.read_text().replace(
            "[mcp_servers.agentworks]\n",
            '[mcp_servers.agentworks]\ndefault_tools_approval_mode = "approve"\n',
        )
    )

    assert plan(tmp_path).changes == ()
    project_file.apply(removal(tmp_path))
    assert path.read_text() == 'model = "x"\n'


def test_a_table_without_its_marks_stays_and_the_person_is_told(tmp_path: Path) -> None:
    project_file.apply(plan(tmp_path))
    path = tmp_path / CONFIG
    path.write_text(path.read_text().replace("# agentworks: end\n", ""))

    taken_out = removal(tmp_path)

    assert CONFIG not in [change.name for change in taken_out.changes]
    assert "remove it yourself" in taken_out.notes[0]


def test_a_skill_of_our_name_is_left_alone_and_an_older_one_of_ours_renewed(
    tmp_path: Path,
) -> None:
    path = write(tmp_path, SKILL, "---\nname: agentworks\n---\ntheirs\n")
    with pytest.raises(Refused) as refused:
        plan(tmp_path)
    assert refused.value.code == "name_taken"
    assert removal(tmp_path).changes == ()

    path.write_text("<!-- written by `agentworks attach`, long ago -->")
    project_file.apply(plan(tmp_path))
    assert "name: agentworks\n" in path.read_text()


@pytest.mark.parametrize(
    ("name", "text", "line"),
    [(HOOKS, '{\n"hooks": {},\n}', 3), (CONFIG, "a = 1\nb\n", 2)],
)
def test_a_file_that_does_not_parse_is_refused_with_its_line(
    tmp_path: Path, name: str, text: str, line: int
) -> None:
    path = write(tmp_path, name, text)

    with pytest.raises(Refused) as refused:
        plan(tmp_path)

    assert refused.value.code == "file_not_strict"
    assert f"{path}, line {line}:" in refused.value.message


def test_a_link_to_the_persons_own_settings_is_not_followed(tmp_path: Path) -> None:
    """A project from elsewhere could bring such a link along."""
    home = tmp_path / "home"
    write(tmp_path, "home/.codex/hooks.json", "{}")
    project = tmp_path / "project"
    project.mkdir()
    (project / ".codex").symlink_to(home / ".codex")

    with pytest.raises(Refused) as refused:
        plan(project)

    assert refused.value.code == "file_unusable"


def test_the_person_is_told_of_trust_approval_and_commits(tmp_path: Path) -> None:
    notes = " ".join(plan(tmp_path).notes)

    for word in ("trust", "default_tools_approval_mode", "commits"):
        assert word in notes
