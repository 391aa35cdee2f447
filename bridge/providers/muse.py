"""Muse Code: what its hooks say and print, and which process it is.

Owns every fact about Muse that the rest of the bridge needs to know. Promises pure
functions of their input: nothing here reads a file, a process or a clock. Known
from public reports on 1.0 to 1.4 and not driven here: its program is not public.

Its hooks have the shape of Claude Code's and an environment that says nothing of
the session, which is why the session comes from stdin alone. No program can write
into a chat of it; an idle one is woken by a command that its own monitor tool runs
(`agentworks monitor`).
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from bridge.core.caller import HookEvent, HookInput, ProcessFacts
from bridge.core.render import Print
from bridge.providers import host_json, programs

NAME = "muse"
TITLE = "Muse Code"
ROUTES: tuple[str, ...] = ("hook",)
OFFERS_AT: frozenset[HookEvent] = frozenset({HookEvent.TURN_ENDED, HookEvent.PROMPT})
HAS_ONE_CHAT = True
HAS_MANY_CHATS = False
IS_IN_PROCESS = False
TRIED = "inputs as published reports show them, not the program"
BUDGET = host_json.CAREFUL_BUDGET
RESULT_BUDGET = host_json.CAREFUL_BUDGET

# Its MCP children have it too, so that it tells nothing apart.
SHELL_MARKS: frozenset[str] = frozenset()
MARKS = frozenset({"MUSE_SESSION_ID"})

_EVENTS: Mapping[str, HookEvent] = MappingProxyType(
    {
        "SessionStart": HookEvent.SESSION_STARTED,
        "UserPromptSubmit": HookEvent.PROMPT,
        "Stop": HookEvent.TURN_ENDED,
        "SessionEnd": HookEvent.SESSION_ENDED,
    }
)


def read_hook(event_word: str, stdin: bytes) -> HookInput:
    """What one hook said; `event_word` is the event that its line names.

    SubagentStop and events we do not know are OTHER. Raises Invalid.
    """
    said = host_json.read(NAME, event_word, stdin)
    is_subagent = said.agent_id is not None or event_word == "SubagentStop"
    return host_json.to_input(NAME, _EVENTS, said, is_subagent)


def print_offer(event: HookEvent, text: str, version: str = "") -> Print:
    """An offer at a turn's end, or as context beside a prompt; ValueError elsewhere."""
    if event is HookEvent.TURN_ENDED:
        return host_json.printed({"decision": "block", "reason": text})
    if event is not HookEvent.PROMPT:
        raise ValueError(f"no offer is printed at {event}")
    said = {"hookEventName": "UserPromptSubmit", "additionalContext": text}
    return host_json.printed({"hookSpecificOutput": said})


def print_block(event: HookEvent, text: str) -> Print:
    """The answer to a typed command; ValueError at any event but PROMPT."""
    if event is not HookEvent.PROMPT:
        raise ValueError(f"no command is answered at {event}")
    return host_json.printed({"decision": "block", "reason": text})


def print_person_line(event: HookEvent, text: str) -> Print | None:
    """None: what Muse is told at a session's start, the model reads."""
    return None


def is_program(facts: ProcessFacts) -> bool:
    """Is this a process of the `muse` program?"""
    return programs.is_native(facts, NAME)


def thread_of_call(meta: Mapping[str, object]) -> str | None:
    """None: a tool call says nothing of its session (a process has one)."""
    return None


def session_of_environment(environment: Mapping[str, str]) -> str | None:
    """The session whose shell this is, or None; raises Refused for nonsense.

    The shell of its monitor tool names none.
    """
    return host_json.session_named(environment, "MUSE_SESSION_ID", TITLE)
