"""Factory's Droid: what its hooks say and print, and which process it is.

Owns every fact about Droid that the rest of the bridge needs to know. Promises
pure functions of their input: nothing here reads a file, a process or a clock.
Known from its own documentation (0.225) and not driven here, since Droid needs an
account. Its hooks have the shape of Claude Code's.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from bridge.core.caller import HookEvent, HookInput, ProcessFacts
from bridge.core.render import Print
from bridge.providers import host_json, programs

NAME = "droid"
TITLE = "Factory Droid"
ROUTES: tuple[str, ...] = ("hook",)
OFFERS_AT: frozenset[HookEvent] = frozenset({HookEvent.TURN_ENDED})
HAS_ONE_CHAT = True
HAS_MANY_CHATS = False
IS_IN_PROCESS = False
TRIED = "inputs as Factory's documentation shows them, not the program"
BUDGET = host_json.CAREFUL_BUDGET
RESULT_BUDGET = host_json.CAREFUL_BUDGET

# It is not known to put anything into the environment of every command it runs.
SHELL_MARKS: frozenset[str] = frozenset()
MARKS: frozenset[str] = frozenset()

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
    """An offer at a turn's end; raises ValueError at any other event."""
    if event is not HookEvent.TURN_ENDED:
        raise ValueError(f"no offer is printed at {event}")
    return host_json.printed({"decision": "block", "reason": text})


def print_block(event: HookEvent, text: str) -> Print:
    """The answer to a typed command; ValueError at any event but PROMPT."""
    if event is not HookEvent.PROMPT:
        raise ValueError(f"no command is answered at {event}")
    return host_json.printed({"decision": "block", "reason": text})


def print_person_line(event: HookEvent, text: str) -> Print | None:
    """None: it is not known that a line at a session's start is shown."""
    return None


def is_program(facts: ProcessFacts) -> bool:
    """Is this a process of the `droid` program?"""
    return programs.is_native(facts, NAME)


def thread_of_call(meta: Mapping[str, object]) -> str | None:
    """None: a tool call says nothing of its session (a process has one)."""
    return None


def session_of_environment(environment: Mapping[str, str]) -> str | None:
    """None: it is not known to name its session in a shell."""
    return None
