"""Gemini CLI: what its hooks say and print, and which process it is.

Owns every fact about Gemini CLI that the rest of the bridge needs to know.
Promises pure functions of their input: nothing here reads a file, a process or a
clock. Observed with 0.61.0, offline.

Gemini starts itself anew, so there are two processes of it; its hooks, tools and
shell commands are children of the inner one. One process has one chat open at a
time. What is printed at a turn's end comes back as a prompt, whose event proves
that it was used. AfterTool is not used: it says nothing that tells a subagent's
tool from the chat's own, so that mail could end in a subagent. `/agentworks` is
known by a command file, whose text is the command as it was typed.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from bridge.core.caller import HookEvent, HookInput, ProcessFacts
from bridge.core.render import Budget, Print
from bridge.providers import host_json, programs

NAME = "gemini"
TITLE = "Gemini CLI"
ROUTES: tuple[str, ...] = ("hook",)
OFFERS_AT: frozenset[HookEvent] = frozenset({HookEvent.TURN_ENDED, HookEvent.PROMPT})
HAS_ONE_CHAT = True
HAS_MANY_CHATS = False
IS_IN_PROCESS = False
TRIED = "Gemini CLI 0.61.0, offline"
# Its source (0.61.0) cuts nothing of it; more than this was not tried whole. It
# writes `<` and `>` of a prompt's context as entities, which this counts.
BUDGET = Budget("bytes", 64 * 1024)
# Of a tool's result over 40,000 characters the middle goes to a file instead.
RESULT_BUDGET = Budget("bytes", 30_000)

# Its shell commands and its MCP children have the same variables.
SHELL_MARKS: frozenset[str] = frozenset()
# The first in what its agents run, the second in its hooks.
MARKS = frozenset({"GEMINI_CLI", "GEMINI_SESSION_ID"})

_EVENTS: Mapping[str, HookEvent] = {
    "SessionStart": HookEvent.SESSION_STARTED,
    "BeforeAgent": HookEvent.PROMPT,
    "AfterAgent": HookEvent.TURN_ENDED,
    "SessionEnd": HookEvent.SESSION_ENDED,
}
_SCRIPTS = ("/@google/gemini-cli/bundle/gemini.js", "/@google/gemini-cli/dist/index.js")
# The host's own word for a turn in which the model said nothing: it was cancelled
# or failed, and after a cancelled one it drops what a hook prints.
_NO_RESPONSE = "[no response text]"
# Without it the host would show the person the whole text in one warning.
_PERSON_LINE = "AgentWorks: mail for this chat, given to Gemini."


def read_hook(event_word: str, stdin: bytes) -> HookInput:
    """What one hook said; `event_word` is the event that its line names.

    Events that we do not know are OTHER. Raises Invalid.
    """
    said = host_json.read(NAME, event_word, stdin)
    heard = host_json.to_input(NAME, _EVENTS, said, said.agent_id is not None)
    if heard.event is HookEvent.TURN_ENDED and said.prompt_response == _NO_RESPONSE:
        return replace(heard, may_drain=False)
    return heard


def print_offer(event: HookEvent, text: str, version: str = "") -> Print:
    """An offer: at a turn's end as the next prompt, at a prompt as context beside it.

    In ASCII: the host decodes each piece that it reads from the pipe by itself.
    Raises ValueError at any other event.
    """
    if event is HookEvent.TURN_ENDED:
        said = {"decision": "deny", "reason": text, "systemMessage": _PERSON_LINE}
        return host_json.printed_in_ascii(said)
    if event is not HookEvent.PROMPT:
        raise ValueError(f"no offer is printed at {event}")
    context = {"hookEventName": "BeforeAgent", "additionalContext": text}
    return host_json.printed_in_ascii({"hookSpecificOutput": context})


def print_block(event: HookEvent, text: str) -> Print:
    """The answer to a typed command; the person sees it, the model nothing.

    Raises ValueError at any event but PROMPT.
    """
    if event is not HookEvent.PROMPT:
        raise ValueError(f"no command is answered at {event}")
    return host_json.printed_in_ascii({"decision": "deny", "reason": text})


def print_person_line(event: HookEvent, text: str) -> Print | None:
    """A line that only the person sees, or None where the host shows none."""
    if event is not HookEvent.SESSION_STARTED:
        return None
    return host_json.printed_in_ascii({"systemMessage": text})


def is_program(facts: ProcessFacts) -> bool:
    """Is this a Gemini CLI process: its script, or one named gemini, run by node?"""
    script = programs.script_of(facts)
    return script.endswith(_SCRIPTS) or script.rpartition("/")[2] == NAME


def thread_of_call(meta: Mapping[str, object]) -> str | None:
    """None: a tool call says nothing of its session (the process is bound to one)."""
    return None


def session_of_environment(environment: Mapping[str, str]) -> str | None:
    """The chat whose hook this is, or None: its shell commands have no id.

    Raises Refused for what is no id.
    """
    return host_json.session_named(environment, "GEMINI_SESSION_ID", TITLE)
