"""Qwen Code: what its hooks say and print, and which process it is.

Owns every fact about Qwen Code that the rest of the bridge needs to know.
Promises pure functions of their input: nothing here reads a file, a process or a
clock. Observed with 0.24.4, offline.

Qwen Code starts itself anew, so there are up to three processes of it; its hooks,
tools and shell commands are children of the innermost one. One process has one
chat open at a time. What is printed at a turn's end comes back as a prompt, whose
event proves that it was used. A prompt event without a prompt is the host going on
after a tool, and no prompt at all. `/agentworks` is known by a command file, whose
text is the command as it was typed: the host has no event for typed text alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise, takewhile
from pathlib import Path

from msgspec.structs import replace

from bridge.core.caller import HookEvent, HookInput, ProcessFacts
from bridge.core.render import Budget, Print
from bridge.providers import host_json, programs

NAME = "qwen"
TITLE = "Qwen Code"
ROUTES: tuple[str, ...] = ("qwen_input", "hook")
OFFERS_AT: frozenset[HookEvent] = frozenset(
    {HookEvent.TURN_ENDED, HookEvent.PROMPT, HookEvent.TOOL_ENDED}
)
HAS_ONE_CHAT = True
HAS_MANY_CHATS = False
IS_IN_PROCESS = False
TRIED = "Qwen Code 0.24.4, offline"
# 60 KB arrived whole at a turn's end, 20,000 escaped characters after a tool. A
# tool's result together with our context is cut over 50,000 characters, of which
# the result may take 25,000; `<` and `>` are entities there, which this counts.
BUDGET = Budget("bytes", 20_000)
# Well below what its source lets one tool answer.
RESULT_BUDGET = Budget("utf16", 60_000)

# Neither its hooks nor its MCP children have it.
SHELL_MARKS = frozenset({"QWEN_CODE"})
MARKS = SHELL_MARKS | {"QWEN_CODE_SESSION_ID"}

_EVENTS: Mapping[str, HookEvent] = {
    "SessionStart": HookEvent.SESSION_STARTED,
    "UserPromptSubmit": HookEvent.PROMPT,
    "PostToolUse": HookEvent.TOOL_ENDED,
    "Stop": HookEvent.TURN_ENDED,
    "SessionEnd": HookEvent.SESSION_ENDED,
}
_HOST_WORDS = {event: word for word, event in _EVENTS.items()}
_INPUT_OPTION = "--input-file"
_SCRIPTS = ("/@qwen-code/qwen-code/cli-entry.js", "/@qwen-code/qwen-code/cli.js")


def read_hook(event_word: str, stdin: bytes) -> HookInput:
    """What one hook said; `event_word` is the event that its line names.

    SubagentStop, StopFailure, events we do not know and a prompt event without a
    prompt are OTHER. Raises Invalid.
    """
    said = host_json.read(NAME, event_word, stdin)
    is_subagent = said.agent_id is not None or event_word == "SubagentStop"
    heard = host_json.to_input(NAME, _EVENTS, said, is_subagent)
    if heard.event is HookEvent.PROMPT and not heard.prompt:
        return replace(heard, event=HookEvent.OTHER)
    return heard


def print_offer(event: HookEvent, text: str, version: str = "") -> Print:
    """An offer: at a turn's end as the next prompt, else as context beside.

    In ASCII: what is read from a pipe in pieces must not be torn in a character.
    Raises ValueError at any other event.
    """
    if event is HookEvent.TURN_ENDED:
        return host_json.printed_in_ascii({"decision": "block", "reason": text})
    if event not in OFFERS_AT:
        raise ValueError(f"no offer is printed at {event}")
    context = {"hookEventName": _HOST_WORDS[event], "additionalContext": text}
    return host_json.printed_in_ascii({"hookSpecificOutput": context})


def print_block(event: HookEvent, text: str) -> Print:
    """The answer to a typed command; the person sees it, the model nothing.

    Raises ValueError at any event but PROMPT.
    """
    if event is not HookEvent.PROMPT:
        raise ValueError(f"no command is answered at {event}")
    return host_json.printed_in_ascii({"decision": "block", "reason": text})


def print_person_line(event: HookEvent, text: str) -> Print | None:
    """None: no line for the person alone was seen."""
    return None


def is_program(facts: ProcessFacts) -> bool:
    """Is this a Qwen Code process: its script, or one named qwen, run by node?"""
    script = programs.script_of(facts)
    return script.endswith(_SCRIPTS) or script.rpartition("/")[2] == NAME


def input_file(facts: ProcessFacts) -> Path | None:
    """The file that this process takes prompts from, by its own command line.

    None without one, with more than one, and for a path that is not absolute: where
    it was started from is not known for sure.
    """
    words = list(takewhile(lambda word: word != "--", facts.arguments))
    named = [after for word, after in pairwise(words) if word == _INPUT_OPTION]
    joined = f"{_INPUT_OPTION}="
    named += [word.removeprefix(joined) for word in words if word.startswith(joined)]
    if len(named) != 1 or not named[0].startswith("/"):
        return None
    return Path(named[0])


def thread_of_call(meta: Mapping[str, object]) -> str | None:
    """None: a tool call says nothing of its session (the process is bound to one)."""
    return None


def session_of_environment(environment: Mapping[str, str]) -> str | None:
    """The chat whose command this is, or None; raises Refused for what is no id.

    An MCP child that outlives a /clear names the chat before it, so that this is
    to be compared with what the process says of itself.
    """
    return host_json.session_named(environment, "QWEN_CODE_SESSION_ID", TITLE)
