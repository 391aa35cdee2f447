"""Antigravity's CLI (agy): what its hooks say and print, and which process it is.

Owns every fact about agy that the rest of the bridge needs to know. Promises pure
functions of their input: nothing here reads a file, a process or a clock. Known
from public reports on 1.1 to 1.5 and not driven here, since agy needs an account.

Its hooks do not name their event: the hook's line does. They have no sign that a
hook continued a turn. Each must print JSON, also when there is nothing to say.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from msgspec import Struct

from bridge.core.caller import HookEvent, HookInput, ProcessFacts
from bridge.core.render import Print
from bridge.providers import host_json, programs

NAME = "agy"
TITLE = "Antigravity CLI"
ROUTES: tuple[str, ...] = ("agy_agentapi", "hook")
# Before a call of the model only a system message could be put in, and the text
# of other agents must not come with the authority of one.
OFFERS_AT: frozenset[HookEvent] = frozenset({HookEvent.TURN_ENDED})
HAS_ONE_CHAT = True
HAS_MANY_CHATS = False
IS_IN_PROCESS = False
TRIED = "inputs as published reports show them, not the program"
BUDGET = host_json.CAREFUL_BUDGET
RESULT_BUDGET = host_json.CAREFUL_BUDGET
NOTHING = host_json.printed({})
"""What a hook prints that has nothing to say."""

# In its shell tool, its hooks and its MCP children alike, so that they tell nothing
# apart; what must be told apart here is done by process alone.
SHELL_MARKS: frozenset[str] = frozenset()
MARKS = frozenset({"ANTIGRAVITY_AGENT", "ANTIGRAVITY_CONVERSATION_ID"})

_EVENTS: Mapping[str, HookEvent] = MappingProxyType(
    {"PreInvocation": HookEvent.TOOL_ENDED, "Stop": HookEvent.TURN_ENDED}
)
# Ended by itself, and not by the person, an error or a limit.
_BY_ITSELF = frozenset({"", "NO_TOOL_CALL", "model_stop"})


class _Said(Struct, frozen=True, rename="camel"):
    """The fields of one hook event that we read; agy says more."""

    conversation_id: str
    workspace_paths: list[str] | None = None
    termination_reason: str | None = None
    fully_idle: bool = False


def read_hook(event_word: str, stdin: bytes) -> HookInput:
    """What one hook said; `event_word` is the event that its line names.

    PreInvocation, before each call of the model, is TOOL_ENDED: it is in the middle
    of a turn. A turn's end may drain only when the model ended it by itself and
    nothing goes on in the background. Raises Invalid.
    """
    said = host_json.decoded(NAME, stdin, _Said)
    if not host_json.is_session_id(said.conversation_id):
        raise host_json.invalid(NAME, "named no conversation")
    folder = (said.workspace_paths or [""])[0]
    if folder and not host_json.is_folder(folder):
        raise host_json.invalid(NAME, "named a folder that cannot be one")
    event = _EVENTS.get(event_word, HookEvent.OTHER)
    ended = said.fully_idle and (said.termination_reason or "") in _BY_ITSELF
    return HookInput(
        provider=NAME,
        event=event,
        session_id=said.conversation_id,
        folder=folder,
        may_drain=event is not HookEvent.TURN_ENDED or ended,
    )


def print_offer(event: HookEvent, text: str, version: str = "") -> Print:
    """An offer at a turn's end, which goes on with it; ValueError elsewhere."""
    if event is not HookEvent.TURN_ENDED:
        raise ValueError(f"no offer is printed at {event}")
    return host_json.printed({"decision": "continue", "reason": text})


def print_block(event: HookEvent, text: str) -> Print:
    """Raises ValueError: agy has no event for what the person types."""
    raise ValueError(f"no command is answered at {event}")


def print_person_line(event: HookEvent, text: str) -> Print | None:
    """None: all that a hook of agy prints is for the model."""
    return None


def is_program(facts: ProcessFacts) -> bool:
    """Is this a process of the `agy` program?"""
    return programs.is_native(facts, NAME)


def thread_of_call(meta: Mapping[str, object]) -> str | None:
    """None: a tool call says nothing of its conversation."""
    return None


def session_of_environment(environment: Mapping[str, str]) -> str | None:
    """The conversation whose shell this is, or None; raises Refused for nonsense."""
    return host_json.session_named(environment, "ANTIGRAVITY_CONVERSATION_ID", TITLE)
