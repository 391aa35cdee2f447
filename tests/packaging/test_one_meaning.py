"""Skill, tools, guidance and command line name the same things and rules."""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest

from bridge.cli.message import message
from bridge.core.facts import FACTS
from bridge.core.guidance import text as guidance_text
from bridge.tools.catalog import TOOLS, Tool, schema
from tests.core.examples import BOB

PLUGINS = Path(__file__).resolve().parents[2] / "packaging" / "plugins"
SKILLS = sorted(PLUGINS.rglob("skills/agent-messages/SKILL.md"))
NAMES = {tool.name for tool in TOOLS}
COMMANDS = {"set_purpose": "purpose"}
# What the command line calls an argument, where its name is another one.
ARGUMENTS = {"inbox": "inbox_id", "wait": "wait_s"}
GLOBAL = {"provider", "config", "server", "as_json", "help"}
# A page of a shell is as long as it is; only a tool's answer has a limit.
TOOLS_ALONE = {"start", "limit"}


def named_in(text: str) -> set[str]:
    return set(re.findall(r"agent_message_\w+", text))


def name_of(tool: Tool) -> str:
    return tool.name


def arguments_of(tool: Tool) -> dict[str, click.Parameter]:
    """The command's own arguments by their names in the tool."""
    command = message.commands[COMMANDS.get(tool.verb, tool.verb)]
    found = {}
    for each in command.params:
        name = each.name or ""
        if name == "text":
            name = "purpose" if tool.verb == "set_purpose" else "message"
        if name not in GLOBAL:
            found[ARGUMENTS.get(name, name)] = each
    return found


@pytest.mark.parametrize("path", SKILLS, ids=[path.parts[-5] for path in SKILLS])
def test_the_skill_names_every_tool_and_no_other(path: Path) -> None:
    assert named_in(path.read_text()) == NAMES


def test_guidance_and_skill_say_the_same_eight_facts() -> None:
    guidance = guidance_text(BOB, "agentworks")
    source = (PLUGINS / "shared/skills/agent-messages/SKILL.md").read_text()

    assert named_in(guidance) <= NAMES
    for fact in FACTS:
        assert fact.sentence in guidance, fact.key
        assert fact.sentence in source, fact.key


def test_every_tool_is_a_command_and_every_command_a_tool() -> None:
    assert set(message.commands) == {
        COMMANDS.get(tool.verb, tool.verb) for tool in TOOLS
    }


@pytest.mark.parametrize("tool", TOOLS, ids=name_of)
def test_a_command_takes_what_its_tool_takes(tool: Tool) -> None:
    taken, known = arguments_of(tool), set(schema(tool).get("properties", {}))

    assert set(taken) <= known
    assert known - set(taken) <= TOOLS_ALONE


@pytest.mark.parametrize("tool", TOOLS, ids=name_of)
def test_what_a_tool_must_be_told_its_command_must_be_told_too(tool: Tool) -> None:
    taken = arguments_of(tool)
    must = {name for name, each in taken.items() if each.required}
    own = {"submission_id"} if tool.verb == "send" else set()  # it makes one itself
    asked = {"id"} if tool.verb == "status" else set()  # it has no word for itself

    assert must | own == set(schema(tool).get("required", ())) | asked


def test_the_two_receipts_are_the_same_two() -> None:
    (ack,) = [tool for tool in TOOLS if tool.verb == "ack"]
    choice = arguments_of(ack)["delivery"].type

    assert isinstance(choice, click.Choice)
    assert list(choice.choices) == schema(ack)["properties"]["delivery"]["enum"]
