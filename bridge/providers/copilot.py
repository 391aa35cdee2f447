"""GitHub Copilot CLI: what its hooks say and print, and which process it is.

Owns every fact about Copilot CLI that the rest of the bridge needs to know.
Promises pure functions of their input: nothing here reads a file, a process or a
clock. Observed with 1.0.102, offline.

One process can have several chats (its Sessions tab), so a process says nothing
about the chat: hooks carry its id, its shell commands and MCP children have it in
their environment. Its hooks do not name their event, so the hook's line does. What
is printed at a turn's end comes back as a prompt, whose event proves that it was
used; a turn that was cancelled or failed has no end. `/agentworks` is known by a
skill, and what is typed after it is at the end of the prompt that the host makes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec
from msgspec import UNSET, Struct, UnsetType

from bridge.core.caller import HookEvent, HookInput, ProcessFacts
from bridge.core.render import Budget, Print
from bridge.providers import host_json, programs

NAME = "copilot"
TITLE = "GitHub Copilot CLI"
ROUTES: tuple[str, ...] = ("hook",)
OFFERS_AT: frozenset[HookEvent] = frozenset(
    {HookEvent.TURN_ENDED, HookEvent.PROMPT, HookEvent.TOOL_ENDED}
)
HAS_ONE_CHAT = False
HAS_MANY_CHATS = True
IS_IN_PROCESS = False
TRIED = "GitHub Copilot CLI 1.0.102, offline"
# A turn's end and a prompt carry 60 KB whole; context after a tool is cut a little
# over 10,000 characters.
BUDGET = Budget("utf16", 9_500)
RESULT_BUDGET = Budget("utf16", 9_500)

SHELL_MARKS: frozenset[str] = frozenset()
# Its shell commands and its MCP children have it, each that of its chat; no hook.
CHILD_MARKS = frozenset({"COPILOT_AGENT_SESSION_ID"})
# The other one is for its shell commands and its hooks.
MARKS = CHILD_MARKS | {"COPILOT_CLI"}

_EVENTS: Mapping[str, HookEvent] = {
    "sessionStart": HookEvent.SESSION_STARTED,
    "userPromptSubmitted": HookEvent.PROMPT,
    "postToolUse": HookEvent.TOOL_ENDED,
    "agentStop": HookEvent.TURN_ENDED,
    "sessionEnd": HookEvent.SESSION_ENDED,
}
_PROGRAM = re.compile(r"copilot(-(linux|linuxmusl|darwin)-(x64|arm64))?")
# How the prompt begins and ends that the host makes of a typed `/agentworks …`; what
# stands between is the skill, whoever wrote it, and then what was typed.
_SKILL_HEAD = re.compile(
    r'The user explicitly invoked the "/agentworks" skill\. [^\n]*\n\n'
    r'<skill-context name="agentworks">\n'
)
_SKILL_END = "\n</skill-context>"
_ARGUMENTS = "\nARGUMENTS: "


class _Said(Struct, frozen=True, rename="camel"):
    """The fields of one hook event that we read; a host may say more."""

    session_id: str
    cwd: str = ""
    prompt: str | UnsetType = UNSET
    # Written in the other manner by the host itself.
    stop_hook_active: bool | UnsetType = msgspec.field(
        default=UNSET, name="stop_hook_active"
    )
    source: str = ""
    reason: str = ""
    agent_id: str | None = None
    parent_agent_id: str | None = None


def read_hook(event_word: str, stdin: bytes) -> HookInput:
    """What one hook said; `event_word` is the event that its line names.

    subagentStop and events we do not know are OTHER; a subagent has an id of its
    own, and the chat above it is never named in its place. Raises Invalid.
    """
    said = host_json.decoded(NAME, stdin, _Said)
    event = _EVENTS.get(event_word, HookEvent.OTHER)
    problem = _problem(said, event)
    if problem:
        raise host_json.invalid(NAME, problem)
    ids = (said.agent_id, said.parent_agent_id)
    return HookInput(
        provider=NAME,
        event=event,
        session_id=said.session_id,
        prompt=_typed(said.prompt) if event is HookEvent.PROMPT and said.prompt else "",
        is_subagent=ids != (None, None) or event_word == "subagentStop",
        is_continuation=said.stop_hook_active is True,
        source=said.source or said.reason,
        folder=said.cwd,
    )


def print_offer(event: HookEvent, text: str, version: str = "") -> Print:
    """An offer: at a turn's end as the next prompt, else as context beside.

    Raises ValueError at any other event.
    """
    if event is HookEvent.TURN_ENDED:
        return host_json.printed({"decision": "block", "reason": text})
    if event not in OFFERS_AT:
        raise ValueError(f"no offer is printed at {event}")
    return host_json.printed({"additionalContext": text})


def print_block(event: HookEvent, text: str) -> Print:
    """The answer to a typed command; the person sees it, the model nothing.

    Raises ValueError at any event but PROMPT.
    """
    if event is not HookEvent.PROMPT:
        raise ValueError(f"no command is answered at {event}")
    return host_json.printed({"decision": "block", "reason": text})


def print_person_line(event: HookEvent, text: str) -> Print | None:
    """None: whatever Copilot is told at a session's start, the model reads too."""
    return None


def is_program(facts: ProcessFacts) -> bool:
    """Is this a Copilot CLI process: its native binary, under one of its names?

    Not the npm package's script, which only starts the binary and waits. With an
    unreadable program the command line stands alone.
    """
    command = programs.argument_name(facts, 0)
    program = programs.program_name(facts) if facts.program else command
    if _PROGRAM.fullmatch(program) is None:
        return False
    return command == "" or _PROGRAM.fullmatch(command) is not None


def thread_of_call(meta: Mapping[str, object]) -> str | None:
    """None: a tool call says nothing of its session (its child's environment does)."""
    return None


def session_of_environment(environment: Mapping[str, str]) -> str | None:
    """The chat whose command or MCP child this is, or None where none is named.

    Raises Refused for what is no id.
    """
    return host_json.session_named(environment, "COPILOT_AGENT_SESSION_ID", TITLE)


def _problem(said: _Said, event: HookEvent) -> str:
    """What is wrong with this event; empty when nothing is."""
    if not host_json.is_session_id(said.session_id):
        return "named no session"
    if said.cwd and not host_json.is_folder(said.cwd):
        return "named a folder that cannot be one"
    if any(len(word) > host_json.WORD_LIMIT for word in (said.source, said.reason)):
        return "used a word that is too long"
    if event is HookEvent.PROMPT and said.prompt is UNSET:
        return "sent a prompt event without a prompt"
    if event is HookEvent.TURN_ENDED and said.stop_hook_active is UNSET:
        return "did not say whether a hook continued this turn"
    return ""


def _typed(prompt: str) -> str:
    """The prompt as it was typed, where the host made a skill's text of one line."""
    head = _SKILL_HEAD.match(prompt)
    inside = "" if head is None else prompt[head.end() :].rstrip()
    if not inside.endswith(_SKILL_END):
        return prompt
    _, _, arguments = inside.removesuffix(_SKILL_END).partition(_ARGUMENTS)
    if len(arguments.splitlines()) > 1:
        return prompt
    return f"/agentworks {arguments}".strip()
