"""Codex: what its hooks say and print, which process it is, which thread calls.

Owns every fact about Codex that the rest of the bridge needs to know. Promises
pure functions of their input: nothing here reads a file, a process or a clock.
Observed with 0.171.0, offline.

One Codex process can serve many chats (its terminal program starts a shared
background server), so a process says nothing about the chat: the thread id does.
Codex fires no event for typed text alone; the text of other programs and of
subagents comes as the same prompt event, the latter with an agent id. A typed
`/agentworks` reaches a hook only with a space before it, which the host trims.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

from bridge.core.caller import HookEvent, HookInput, ProcessFacts
from bridge.core.render import Budget, Print
from bridge.errors import Refused
from bridge.providers import host_json, programs

NAME = "codex"
TITLE = "Codex"
ROUTES: tuple[str, ...] = ("codex_app_server", "codex_desktop", "hook")
OFFERS_AT: frozenset[HookEvent] = frozenset(
    {HookEvent.PROMPT, HookEvent.TOOL_ENDED, HookEvent.TURN_ENDED}
)
HAS_ONE_CHAT = False
HAS_MANY_CHATS = True
IS_IN_PROCESS = False
TRIED = "Codex 0.171.0, offline"
# A Stop reason of 10,000 UTF-8 bytes arrives whole; a longer one is cut in the
# middle and written to a file that everyone can read. Codex writes `<`, `>` and
# `&` of the reason as entities, which this budget counts (see Budget).
BUDGET = Budget("bytes", 9_500)
# A tool's result over 12,000 bytes is cut in the middle where Codex does not know
# the model; known models take more.
RESULT_BUDGET = Budget("bytes", 9_500)

# Its hooks and MCP children carry neither; in a shared process this is what tells
# one chat's shell from another chat's hook.
SHELL_MARKS = frozenset({"CODEX_THREAD_ID", "CODEX_TOOL_CALL_ID"})
# Set in what its shell tool starts; CODEX_HOME is a person's own setting.
MARKS = SHELL_MARKS | {
    "CODEX_SANDBOX",
    "CODEX_SANDBOX_NETWORK_DISABLED",
    "CODEX_SESSION_ID",
}

_EVENTS: Mapping[str, HookEvent] = {
    "SessionStart": HookEvent.SESSION_STARTED,
    "UserPromptSubmit": HookEvent.PROMPT,
    "PostToolUse": HookEvent.TOOL_ENDED,
    "Stop": HookEvent.TURN_ENDED,
    "SessionEnd": HookEvent.SESSION_ENDED,
}

_HOST_WORDS = {event: word for word, event in _EVENTS.items()}

# What the released programs are called; anything else that shares the file (its
# sandbox runs the same file as `codex-linux-sandbox`) is no chat's process.
_PROGRAM = re.compile(
    r"codex(-(x86_64|aarch64)-(unknown-linux-(musl|gnu)|apple-darwin))?"
)
_TURN = "x-codex-turn-metadata"


class _Turn(msgspec.Struct, frozen=True):
    """The fields that we read of what Codex says about the turn of a tool call."""

    session_id: str
    thread_id: str
    thread_source: str = ""
    parent_thread_id: str | None = None
    subagent_kind: str | None = None


def read_hook(event_word: str, stdin: bytes) -> HookInput:
    """What one hook said; `event_word` is the event that its line names.

    SubagentStop, Interrupt and events we do not know are OTHER; a subagent's
    prompt is PROMPT with `is_subagent`. Raises Invalid.
    """
    said = host_json.read(NAME, event_word, stdin)
    is_subagent = said.agent_id is not None or event_word == "SubagentStop"
    return host_json.to_input(NAME, _EVENTS, said, is_subagent)


def print_offer(event: HookEvent, text: str, version: str = "") -> Print:
    """An offer: at a turn's end the turn goes on with the text.

    Exactly `decision` and `reason` there: one field that Codex does not know and it
    drops the whole answer. Elsewhere it is a developer message of its own. Raises
    ValueError at an event that is not in OFFERS_AT.
    """
    if event not in OFFERS_AT:
        raise ValueError(f"no offer is printed at {event}")
    if event is not HookEvent.TURN_ENDED:
        named = {"hookEventName": _HOST_WORDS[event], "additionalContext": text}
        return host_json.printed({"hookSpecificOutput": named})
    return host_json.printed({"decision": "block", "reason": text})


def print_block(event: HookEvent, text: str) -> Print:
    """The answer to a typed command; the person sees it, the model nothing.

    Raises ValueError at any event but PROMPT.
    """
    if event is not HookEvent.PROMPT:
        raise ValueError(f"no command is answered at {event}")
    return host_json.printed({"decision": "block", "reason": text})


def print_person_line(event: HookEvent, text: str) -> Print | None:
    """None: whatever Codex is told at a session's start, the model reads too."""
    return None


def is_program(facts: ProcessFacts) -> bool:
    """Is this a Codex process, by its program and how it was started?

    The native binary under one of its released names, with argv[0] saying so too:
    the terminal program, `codex exec`, `codex app-server` and the shared
    background server. Not the npm package's node script, which only starts the
    binary and waits, and not the sandbox's helpers, which run the same file. With
    an unreadable program both kernel name and argv[0] must be `codex`.
    """
    command = programs.argument_name(facts, 0)
    if not facts.program:
        return facts.name == NAME and command == NAME
    if _PROGRAM.fullmatch(programs.program_name(facts)) is None:
        return False
    return command == "" or _PROGRAM.fullmatch(command) is not None


def thread_of_call(meta: Mapping[str, object]) -> str:
    """The chat that makes this tool call, from the call's own `_meta`.

    Every id that Codex gives must be the same: a root chat's session is its
    thread. Raises Refused when there is none, they differ, or a subagent calls.
    """
    turn = _turn_of(meta.get(_TURN))
    is_subagent = turn.thread_source == "subagent" or (
        turn.parent_thread_id is not None or turn.subagent_kind is not None
    )
    if is_subagent:
        raise _subagent()
    named = (turn.session_id, meta.get("threadId"), meta.get("sessionId"))
    if any(each is not None and each != turn.thread_id for each in named):
        raise _unclear("Codex named more than one thread for this call")
    if not host_json.is_session_id(turn.thread_id):
        raise _unclear("Codex named no thread for this call")
    return turn.thread_id


def session_of_environment(environment: Mapping[str, str]) -> str | None:
    """The chat whose shell this is, or None where Codex named none.

    Both CODEX_THREAD_ID and CODEX_SESSION_ID must be there and equal; a
    subagent's differ. Raises Refused.
    """
    thread = environment.get("CODEX_THREAD_ID", "")
    session = environment.get("CODEX_SESSION_ID", "")
    if not thread and not session:
        return None
    if thread and session and thread != session:
        raise _subagent()
    if not host_json.is_session_id(thread) or thread != session:
        raise _unclear("CODEX_THREAD_ID and CODEX_SESSION_ID do not name one thread")
    return thread


def _turn_of(said: object) -> _Turn:
    """From an object, as tool calls carry it, or from JSON text, as requests do."""
    try:
        if isinstance(said, str):
            return msgspec.json.decode(said, type=_Turn)
        return msgspec.convert(said, type=_Turn)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError) as error:
        raise _unclear("Codex did not say which thread makes this call") from error


def _unclear(what: str) -> Refused:
    return Refused(
        "session_unclear",
        f"{what}, so it cannot be told whose messages these would be.",
        "Use the tools from a Codex chat; this bridge was tried with Codex 0.171.",
    )


def _subagent() -> Refused:
    return Refused(
        "subagent",
        "A subagent has no messages of its own; they belong to the chat above it.",
        "Let the chat itself use the messaging tools.",
    )
