"""Installing for Cursor, agy, Muse, Droid and Kimi Code, and taking it out again."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bridge.errors import Refused
from bridge.providers import (
    agy_install,
    cursor_install,
    droid_install,
    kimi_install,
    muse_install,
    project_file,
)
from bridge.providers.project_file import Plan
from tests.providers.documents import OBJECTS, texts

TEMPLATES = Path(__file__).resolve().parents[2] / "packaging" / "plugins"
FILES = {
    "cursor": (cursor_install, cursor_install.HOOKS, "hooks"),
    "agy": (agy_install, agy_install.HOOKS, "agentworks"),
    "muse": (muse_install, muse_install.HOOKS, "hooks"),
    "droid": (droid_install, droid_install.SETTINGS, "hooks"),
}
every = pytest.mark.parametrize("name", FILES)


def plan(name: str, project: Path) -> Plan:
    installer: ModuleType = FILES[name][0]
    planned: Plan = installer.plan(project, project / "state", TEMPLATES)
    return planned


def removal(name: str, project: Path) -> Plan:
    installer: ModuleType = FILES[name][0]
    planned: Plan = installer.removal(project, project / "state", TEMPLATES)
    return planned


def write(project: Path, name: str, text: str) -> Path:
    path = project / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode())
    return path


def events(name: str, project: Path) -> dict[str, list[dict[str, object]]]:
    _, file, root = FILES[name]
    found: dict[str, list[dict[str, object]]]
    found = json.loads((project / file).read_text())[root]
    return found


def lines(name: str, project: Path) -> dict[str, str]:
    """Our command of each event, whatever shape its entry has."""
    found = {}
    for event, entries in events(name, project).items():
        (entry,) = entries
        hooks = entry.get("hooks")
        inner = hooks[0] if isinstance(hooks, list) else entry
        found[event] = str(inner["command"])
    return found


# ---- what is put there ----------------------------------------------------------


@every
def test_a_new_project_gets_its_file_and_loses_it_again(
    name: str, tmp_path: Path
) -> None:
    installer = FILES[name][0]
    assert installer.plan(tmp_path, tmp_path / "state", TEMPLATES).changes

    project_file.apply(plan(name, tmp_path))

    assert not installer.plan(tmp_path, tmp_path / "state", TEMPLATES).changes
    for event, line in lines(name, tmp_path).items():
        ask = f"'{tmp_path}/state/bin/ask'"
        assert line.startswith(f"[ -x {ask} ] || ")
        assert f"exec {ask} hook {name} {event}" in line
    project_file.apply(removal(name, tmp_path))
    assert list(tmp_path.iterdir()) == []


@every
def test_planning_changes_nothing(name: str, tmp_path: Path) -> None:
    plan(name, tmp_path)
    removal(name, tmp_path)

    assert list(tmp_path.iterdir()) == []


@every
def test_the_person_is_told_what_else_is_needed(name: str, tmp_path: Path) -> None:
    notes = plan(name, tmp_path).notes

    assert "commits" in notes[-1]
    assert all(note.endswith(".") for note in notes)


def test_cursor_gets_a_version_a_loop_limit_and_a_server(tmp_path: Path) -> None:
    project_file.apply(plan("cursor", tmp_path))

    document = json.loads((tmp_path / cursor_install.HOOKS).read_text())
    assert document["version"] == 1
    assert document["hooks"]["stop"][0]["loop_limit"] == 5
    assert set(document["hooks"]["stop"][0]) == {"command", "timeout", "loop_limit"}
    assert json.loads((tmp_path / cursor_install.SERVERS).read_text()) == {
        "mcpServers": {
            "agentworks": {
                "command": str(tmp_path / "state" / "bin" / "pipe"),
                "args": ["mcp", "cursor"],
            }
        }
    }


@every
def test_every_timeout_is_whole_seconds(name: str, tmp_path: Path) -> None:
    """agy and Muse drop the whole file for anything else."""
    project_file.apply(plan(name, tmp_path))

    text = (tmp_path / FILES[name][1]).read_text()
    found = re.findall(r'"timeout": (.*?),?\n', text)
    assert found
    assert all(each.isdecimal() for each in found)


def test_agy_is_told_json_even_where_the_bridge_is_gone(tmp_path: Path) -> None:
    project_file.apply(plan("agy", tmp_path))

    for line in lines("agy", tmp_path).values():
        assert "|| { printf '{}'; exit 0; }; exec" in line
        assert line.endswith(" --else '{}'")
    assert "PreToolUse" not in events("agy", tmp_path)


def test_muse_and_droid_get_no_key_that_they_do_not_know(tmp_path: Path) -> None:
    for name in ("muse", "droid"):
        project_file.apply(plan(name, tmp_path))
        for (group,) in events(name, tmp_path).values():
            assert set(group) == {"hooks"}
            hooks = group["hooks"]
            assert isinstance(hooks, list)
            assert [set(hook) for hook in hooks] == [{"type", "command", "timeout"}]


# ---- what others have -------------------------------------------------------------


@every
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50)
@given(text=texts(OBJECTS))
def test_what_others_have_survives_and_comes_back(
    name: str, tmp_path: Path, text: str
) -> None:
    path = write(tmp_path, FILES[name][1], text)
    try:
        planned = plan(name, tmp_path)
    except Refused as refused:
        assert refused.code == "file_not_strict"  # noqa: PT017 - either way is right
        return
    project_file.apply(planned)

    assert plan(name, tmp_path).changes == ()
    project_file.apply(removal(name, tmp_path))
    assert path.read_bytes() == text.encode()


@every
def test_a_line_whose_timeout_was_changed_is_still_ours(
    name: str, tmp_path: Path
) -> None:
    project_file.apply(plan(name, tmp_path))
    path = tmp_path / FILES[name][1]
    path.write_text(path.read_text().replace('"timeout": 10', '"timeout": 60'))

    assert plan(name, tmp_path).changes == ()
    project_file.apply(removal(name, tmp_path))
    assert not path.exists()


@pytest.mark.parametrize("name", ["muse", "droid"])
def test_hooks_that_were_put_beside_ours_stay(name: str, tmp_path: Path) -> None:
    project_file.apply(plan(name, tmp_path))
    path = tmp_path / FILES[name][1]
    document = json.loads(path.read_text())
    theirs = {"type": "command", "command": "lint"}
    document["hooks"]["Stop"][0]["hooks"].insert(0, theirs)
    path.write_text(json.dumps(document, indent=2))

    project_file.apply(removal(name, tmp_path))

    assert json.loads(path.read_text()) == {"hooks": {"Stop": [{"hooks": [theirs]}]}}


@every
@pytest.mark.parametrize("text", ["{\n  // mine\n}", '{\n  "a": 1,\n}', "\n\ufeff{}"])
def test_what_is_not_strict_is_refused_with_its_line(
    name: str, text: str, tmp_path: Path
) -> None:
    path = write(tmp_path, FILES[name][1], text)

    with pytest.raises(Refused, match=r"line [23]") as refused:
        plan(name, tmp_path)

    assert refused.value.code == "file_not_strict"
    assert path.read_text() == text


@every
def test_a_link_is_refused(name: str, tmp_path: Path) -> None:
    elsewhere = write(tmp_path, "elsewhere.json", "{}")
    path = tmp_path / FILES[name][1]
    path.parent.mkdir()
    path.symlink_to(elsewhere)

    with pytest.raises(Refused, match="link"):
        plan(name, tmp_path)


def test_another_server_of_our_name_is_kept(tmp_path: Path) -> None:
    text = '{"mcpServers": {"agentworks": {"url": "https://example.com"}}}'
    write(tmp_path, cursor_install.SERVERS, text)

    with pytest.raises(Refused) as refused:
        plan("cursor", tmp_path)
    assert refused.value.code == "name_taken"
    project_file.apply(removal("cursor", tmp_path))
    assert (tmp_path / cursor_install.SERVERS).read_text() == text


def test_a_server_with_more_settings_is_still_ours(tmp_path: Path) -> None:
    project_file.apply(plan("cursor", tmp_path))
    path = tmp_path / cursor_install.SERVERS
    path.write_text(path.read_text().replace('"args"', '"disabled": true, "args"'))

    assert plan("cursor", tmp_path).changes == ()
    project_file.apply(removal("cursor", tmp_path))
    assert not path.exists()


# ---- Droid, which has two files ---------------------------------------------------


@given(st.booleans())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_droids_hook_file_is_used_where_there_is_one(
    tmp_path: Path, is_wrapped: bool
) -> None:
    theirs = {"Stop": [{"hooks": [{"type": "command", "command": "lint"}]}]}
    text = json.dumps({"hooks": theirs} if is_wrapped else theirs, indent=2)
    path = write(tmp_path, droid_install.HOOKS, text)

    project_file.apply(plan("droid", tmp_path))

    document = json.loads(path.read_text())
    found = document["hooks"] if is_wrapped else document
    assert list(found) == ["Stop", "SessionStart", "UserPromptSubmit", "SessionEnd"]
    assert len(found["Stop"]) == 2
    assert not (tmp_path / droid_install.SETTINGS).exists()
    project_file.apply(removal("droid", tmp_path))
    assert path.read_text() == text


def test_droids_other_settings_are_not_touched(tmp_path: Path) -> None:
    text = '{\n  "model": "x"\n}\n'
    path = write(tmp_path, droid_install.SETTINGS, text)

    project_file.apply(plan("droid", tmp_path))
    assert json.loads(path.read_text())["model"] == "x"
    project_file.apply(removal("droid", tmp_path))
    assert path.read_text() == text


# ---- Kimi Code, which has none in projects ----------------------------------------


def test_kimi_is_never_written_and_the_person_is_shown_the_lines(
    tmp_path: Path,
) -> None:
    state = tmp_path / "it's \\ here"
    planned = kimi_install.plan(tmp_path, state, TEMPLATES)

    assert planned.changes == ()
    sentence, *lines = planned.notes
    assert "config.toml" in sentence
    shown = tomllib.loads("\n".join(lines))
    assert [each["event"] for each in shown["hooks"]] == [
        "SessionStart",
        "UserPromptSubmit",
        "Stop",
        "SessionEnd",
    ]
    for each in shown["hooks"]:
        assert each["command"].endswith(f" hook kimi {each['event']}")
        assert str(state).replace("'", "'\\''") in each["command"]
    assert kimi_install.removal(tmp_path, state, TEMPLATES).changes == ()
    assert list(tmp_path.iterdir()) == []
