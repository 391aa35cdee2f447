"""Kimi Code: what its hooks say and print, and which process it is.

Owns every fact about Kimi Code that the rest of the bridge needs to know. Promises
pure functions of their input: nothing here reads a file, a process or a clock.
Known from its own published package (2.1.0) and not driven here.

A hook speaks by its exit code: 2 and a text on stderr. At a turn's end that text
is the next message, once in a turn; after that no hook is asked.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from bridge.core.caller import HookEvent, HookInput, ProcessFacts
from bridge.core.render import Print
from bridge.providers import host_json, programs

NAME = "kimi"
TITLE = "Kimi Code"
ROUTES: tuple[str, ...] = ("hook",)
OFFERS_AT: frozenset[HookEvent] = frozenset({HookEvent.TURN_ENDED})
HAS_ONE_CHAT = True
HAS_MANY_CHATS = False
IS_IN_PROCESS = False
TRIED = "inputs as Kimi Code's own package (2.1.0) makes them, not the program"
BUDGET = host_json.CAREFUL_BUDGET
RESULT_BUDGET = host_json.CAREFUL_BUDGET

# It is not known to put anything into the environment of what it starts.
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
_BLOCK = 2
_SCRIPTS = ("/@moonshot-ai/kimi-code/dist/main.mjs", "/bin/kimi")


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
    return _blocked(text)


def print_block(event: HookEvent, text: str) -> Print:
    """The answer to a typed command; ValueError at any event but PROMPT."""
    if event is not HookEvent.PROMPT:
        raise ValueError(f"no command is answered at {event}")
    return _blocked(text)


def print_person_line(event: HookEvent, text: str) -> Print | None:
    """None: a hook that blocks nothing is not shown."""
    return None


def is_program(facts: ProcessFacts) -> bool:
    """Is this Kimi Code: its script run by node, or a program of its name?"""
    if not programs.is_script_runner(facts):
        return programs.is_native(facts, NAME)
    script = facts.arguments[1] if len(facts.arguments) > 1 else ""
    return script.endswith(_SCRIPTS)


def thread_of_call(meta: Mapping[str, object]) -> str | None:
    """None: a tool call says nothing of its session (a process has one)."""
    return None


def session_of_environment(environment: Mapping[str, str]) -> str | None:
    """None: it is not known to name its session in a shell."""
    return None


def _blocked(text: str) -> Print:
    return Print(exit=_BLOCK, stream="stderr", text=text.encode())
