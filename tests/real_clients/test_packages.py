"""The vendors' own programs look at our plugin packages, and take them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bridge.providers import claude_install, codex_install, packages, project_file
from tests.real_clients.codex_chats import open_talk
from tests.real_clients.house import House
from tests.real_clients.rig.claude import ClaudeRig
from tests.real_clients.rig.codex import CodexRig
from tests.real_clients.rig.pi import PiRig
from tests.real_clients.rig.processes import Finished

pytestmark = [pytest.mark.real_client, pytest.mark.slow]

TEMPLATES = Path(__file__).resolve().parents[2] / "packaging" / "plugins"
EVENTS = {"SessionStart", "UserPromptSubmit", "Stop", "SessionEnd"}


async def claude_says(claude: ClaudeRig, *words: str) -> str:
    program = str(claude.program)
    done = await claude.computer.run(program, *words, extra=claude.variables)
    assert done.code == 0, done
    return done.out


async def codex_does(codex: CodexRig, *words: str) -> Finished:
    program = str(codex.program)
    return await codex.computer.run(program, *words, extra=codex.variables)


async def codex_says(codex: CodexRig, *words: str) -> str:
    done = await codex_does(codex, *words)
    assert done.code == 0, done
    return done.out


async def test_claude_finds_nothing_wrong_with_the_package_in_the_tree(
    claude: ClaudeRig,
) -> None:
    for name in ("claude", "claude/plugins/agentworks"):
        folder = str(TEMPLATES / name)
        said = await claude_says(claude, "plugin", "validate", "--strict", folder)
        assert "Validation passed" in said


async def test_claude_installs_the_package_for_every_project_of_a_person(
    claude: ClaudeRig,
) -> None:
    state = claude.computer.folder / "state"
    project_file.write_package(tuple(claude_install.package(state, TEMPLATES)))

    package = str(state / "plugins" / "claude")
    await claude_says(claude, "plugin", "marketplace", "add", package)
    await claude_says(
        claude, "plugin", "install", "agentworks@agentworks", "--scope", "user"
    )

    listed = json.loads(await claude_says(claude, "plugin", "list", "--json"))
    (plugin,) = [each for each in listed if each["id"] == "agentworks@agentworks"]
    assert plugin["enabled"]
    assert plugin["mcpServers"]["messages"]["args"] == ["mcp", "claude", "channel"]


@pytest.fixture
async def added(codex: CodexRig) -> dict[str, Any]:
    """Our package as Codex's own commands have installed it: its yes."""
    state = codex.computer.folder / "state"
    project_file.write_package(tuple(codex_install.package(state, TEMPLATES)))
    package = str(state / "plugins" / "codex")
    await codex_says(codex, "plugin", "marketplace", "add", package)
    said = await codex_says(codex, "plugin", "add", "agentworks@agentworks", "--json")
    answer: dict[str, Any] = json.loads(said)
    return answer


async def test_codex_installs_the_package_and_lists_its_tool_server(
    codex: CodexRig, added: dict[str, Any]
) -> None:
    assert "agentworks" in json.dumps(added)
    (server,) = json.loads(await codex_says(codex, "mcp", "list", "--json"))

    assert server["name"] == "agentworks"
    assert server["transport"]["command"].endswith("/state/bin/pipe")
    assert server["transport"]["args"] == ["mcp", "codex"]


async def test_codex_keeps_every_part_of_the_package(
    codex: CodexRig, added: dict[str, Any]
) -> None:
    place = codex.codex_home / "plugins" / "cache" / "agentworks" / "agentworks"
    (kept,) = place.iterdir()

    hooks = json.loads((kept / "hooks" / "hooks.json").read_text())["hooks"]
    assert set(hooks) == EVENTS
    for skill in ("agentworks", "agent-messages"):
        assert (kept / "skills" / skill / "SKILL.md").is_file()


async def test_codex_shows_the_model_both_skills_of_the_package(
    codex: CodexRig, added: dict[str, Any]
) -> None:
    await codex.run("hello")

    (request,) = codex.model.turns()
    assert "agentworks:agent-messages" in str(request.body)
    assert "For the person only, never for you to start" in str(request.body)


async def test_codexs_package_alone_attaches_a_chat_and_brings_its_mail(
    codex: CodexRig, house: House
) -> None:
    project_file.write_package(tuple(codex_install.package(house.state, TEMPLATES)))
    package = str(house.state / "plugins" / "codex")
    await codex_says(codex, "plugin", "marketplace", "add", package)
    await codex_says(codex, "plugin", "add", "agentworks@agentworks")
    talk = await open_talk(codex)

    await talk.command("$agentworks:agentworks attach carol", "Attached as carol")
    alice = await house.script()
    await alice.send("Does the parser take comments?", to="carol")
    await talk.turn("good morning")

    assert talk.bodies == ["Does the parser take comments?"]


async def test_pi_installs_the_package_for_every_project_of_a_person(
    pi: PiRig,
) -> None:
    state = pi.computer.folder / "state"
    project_file.write_package(tuple(packages.of("pi", state, TEMPLATES)))
    package = str(state / "plugins" / "pi")

    for words in (["install", package], ["list"]):
        done = await pi.computer.run(*pi.command, *words, extra={"PI_OFFLINE": "1"})
        assert done.code == 0, done
    assert package in done.out
