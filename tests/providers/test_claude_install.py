"""Installing into a project for Claude Code, and taking it out again."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from bridge.core.facts import FACTS
from bridge.errors import Refused
from bridge.providers import claude_install, project_file
from bridge.providers.project_file import Plan
from tests.providers.documents import OBJECTS, texts

ROOT = Path(__file__).resolve().parents[2]
TEMPLATES = ROOT / "packaging" / "plugins"
SETTINGS = claude_install.SETTINGS


def plan(project: Path) -> Plan:
    return claude_install.plan(project, project / "state", TEMPLATES)


def removal(project: Path) -> Plan:
    return claude_install.removal(project, project / "state", TEMPLATES)


def is_installed(project: Path) -> bool:
    return not claude_install.plan(project, project / "state", TEMPLATES).changes


def write(project: Path, text: str) -> Path:
    path = project / SETTINGS
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(text.encode())
    return path


def test_a_new_project_gets_one_file_and_loses_it_again(tmp_path: Path) -> None:
    assert not is_installed(tmp_path)

    project_file.apply(plan(tmp_path))

    assert is_installed(tmp_path)
    assert json.loads((tmp_path / SETTINGS).read_text()) == {
        "extraKnownMarketplaces": {
            "agentworks": {
                "source": {
                    "source": "directory",
                    "path": str(tmp_path / "state" / "plugins" / "claude"),
                }
            }
        },
        "enabledPlugins": {"agentworks@agentworks": True},
    }

    project_file.apply(removal(tmp_path))
    assert not (tmp_path / ".claude").exists()


def test_planning_changes_nothing(tmp_path: Path) -> None:
    plan(tmp_path)
    removal(tmp_path)

    assert list(tmp_path.iterdir()) == []


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(texts(OBJECTS))
def test_settings_of_others_survive_and_come_back(tmp_path: Path, text: str) -> None:
    path = write(tmp_path, text)
    try:
        planned = plan(tmp_path)
    except Refused as refused:
        assert refused.code == "file_not_strict"  # noqa: PT017 - either way is right
        return
    project_file.apply(planned)
    kept = json.loads(path.read_text())
    for name, value in json.loads(text).items():
        if name not in ("extraKnownMarketplaces", "enabledPlugins"):
            assert kept[name] == value

    assert plan(tmp_path).changes == ()
    project_file.apply(removal(tmp_path))
    assert path.read_bytes() == text.encode()


def test_a_plugin_that_the_person_disabled_is_enabled_in_its_place(
    tmp_path: Path,
) -> None:
    write(
        tmp_path,
        '{"enabledPlugins": {"agentworks@agentworks": false, "theirs@x": true}}',
    )

    (change,) = plan(tmp_path).changes

    assert change.after is not None
    assert '{"agentworks@agentworks": true, "theirs@x": true}' in change.after


def test_another_marketplace_of_our_name_is_left_alone(tmp_path: Path) -> None:
    write(tmp_path, '{"extraKnownMarketplaces": {"agentworks": {"source": "x"}}}')

    with pytest.raises(Refused) as refused:
        plan(tmp_path)

    assert refused.value.code == "name_taken"
    assert removal(tmp_path).changes == ()


def test_a_file_that_does_not_parse_is_refused_with_its_line(tmp_path: Path) -> None:
    path = write(tmp_path, '{\n  "a": 1,\n  // mine\n  "b": 2\n}\n')

    with pytest.raises(Refused) as refused:
        plan(tmp_path)

    assert refused.value.code == "file_not_strict"
    assert f"{path}, line 3:" in refused.value.message


# ---- the package -----------------------------------------------------------------


def package(tmp_path: Path) -> dict[str, str]:
    folder = tmp_path / "state" / "plugins" / "claude"
    files = claude_install.package(tmp_path / "state", TEMPLATES)
    return {str(file.path.relative_to(folder)): file.content.decode() for file in files}


def test_the_package_is_whole_and_nothing_in_it_waits_to_be_filled(
    tmp_path: Path,
) -> None:
    files = package(tmp_path)

    assert sorted(files) == [
        ".claude-plugin/marketplace.json",
        "plugins/agentworks/.claude-plugin/plugin.json",
        "plugins/agentworks/.mcp.json",
        "plugins/agentworks/README.md",
        "plugins/agentworks/hooks/hooks.json",
        "plugins/agentworks/skills/agent-messages/SKILL.md",
        "plugins/agentworks/skills/agentworks/SKILL.md",
    ]
    for content in files.values():
        assert re.search(r"@[A-Z]+@", content) is None


def test_the_tool_server_is_the_pipe_by_its_absolute_path(tmp_path: Path) -> None:
    servers = json.loads(package(tmp_path)["plugins/agentworks/.mcp.json"])

    assert servers == {
        "mcpServers": {
            "messages": {
                "command": str(tmp_path / "state" / "bin" / "pipe"),
                "args": ["mcp", "claude", "channel"],
            }
        }
    }


def test_the_plugin_has_the_products_version() -> None:
    manifest = TEMPLATES / "claude/plugins/agentworks/.claude-plugin/plugin.json"
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

    assert json.loads(manifest.read_text())["version"] == project["version"]


def front_matter(skill: str) -> dict[str, str]:
    _, front, body = skill.split("---\n", 2)
    assert body.strip()
    return dict(line.split(": ", 1) for line in front.strip().splitlines())


def test_the_command_is_a_skill_that_the_model_cannot_start(tmp_path: Path) -> None:
    skill = package(tmp_path)["plugins/agentworks/skills/agentworks/SKILL.md"]
    front = front_matter(skill)

    assert front["name"] == "agentworks"
    assert front["disable-model-invocation"] == "true"
    assert "do not carry the command out yourself" in skill


def test_the_messaging_skill_says_every_fact_in_its_own_words(tmp_path: Path) -> None:
    skill = package(tmp_path)["plugins/agentworks/skills/agent-messages/SKILL.md"]

    assert front_matter(skill)["name"] == "agent-messages"
    for fact in FACTS:
        assert fact.sentence in skill, fact.key


def test_the_person_is_told_of_reloading_approval_and_commits(tmp_path: Path) -> None:
    notes = " ".join(plan(tmp_path).notes)

    for word in ("/reload-plugins", "permissions.allow", "commits"):
        assert word in notes
