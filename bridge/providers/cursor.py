"""Cursor, app and CLI: what its hooks say and print, and which process it is.

Owns every fact about Cursor that the rest of the bridge needs to know. Promises
pure functions of their input: nothing here reads a file, a process or a clock.
Known from Cursor's own published package (@cursor/sdk 1.0.32) and not driven here,
since Cursor needs an account.

The app serves the chats of a window in one process, whose terminals are also the
person's; the CLI is a process with one chat. Of several hooks that answer a turn's
end the last one wins, so that what we print may be dropped. Cursor runs the hooks
of Claude Code as well, with its own input.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from msgspec import UNSET, Struct, UnsetType

from bridge.core.caller import HookEvent, HookInput, ProcessFacts
from bridge.core.render import Print
from bridge.providers import host_json, programs

NAME = "cursor"
TITLE = "Cursor"
ROUTES: tuple[str, ...] = ("hook",)
OFFERS_AT: frozenset[HookEvent] = frozenset(
    {HookEvent.TURN_ENDED, HookEvent.PROMPT, HookEvent.TOOL_ENDED}
)
HAS_ONE_CHAT = False
HAS_MANY_CHATS = True
IS_IN_PROCESS = False
TRIED = (
    "inputs as Cursor's own package (@cursor/sdk 1.0.32) makes them, not the program"
)
BUDGET = host_json.CAREFUL_BUDGET
RESULT_BUDGET = host_json.CAREFUL_BUDGET

# Set in its shell tool; its hooks are given others.
SHELL_MARKS = frozenset({"CURSOR_AGENT", "CURSOR_CONVERSATION_ID"})
MARKS = SHELL_MARKS

_EVENTS: Mapping[str, HookEvent] = MappingProxyType(
    {
        "sessionStart": HookEvent.SESSION_STARTED,
        "beforeSubmitPrompt": HookEvent.PROMPT,
        "postToolUse": HookEvent.TOOL_ENDED,
        "stop": HookEvent.TURN_ENDED,
        "sessionEnd": HookEvent.SESSION_ENDED,
    }
)
_COMPLETED = "completed"
_CLI_FOLDER = "/cursor-agent/versions/"
_APP_PROGRAMS = frozenset({"cursor", "Cursor"})
_APP_FOLDERS = ("/cursor", "/Cursor")
_MAC_APP = "/Cursor.app/Contents/"
# Where the app's other half runs on a computer that it reaches over the network.
_REMOTE_FOLDER = "/.cursor-server/"


class _Said(Struct, frozen=True):
    """The fields of one hook event that we read; Cursor says more."""

    conversation_id: str
    hook_event_name: str
    cursor_version: str
    session_id: str = ""
    workspace_roots: list[str] | None = None
    prompt: str | UnsetType = UNSET
    status: str = ""
    loop_count: int | UnsetType = UNSET
    reason: str = ""


def read_hook(event_word: str, stdin: bytes) -> HookInput:
    """What one hook said; `event_word` is the event that its line names.

    A turn that was aborted or failed may not drain: Cursor asks there too, and
    drops the answer. subagentStop and events we do not know are OTHER. Raises
    Invalid.
    """
    said = host_json.decoded(NAME, stdin, _Said)
    _check(said, event_word)
    event = _EVENTS.get(event_word, HookEvent.OTHER)
    count = said.loop_count if said.loop_count is not UNSET else None
    return HookInput(
        provider=NAME,
        event=event,
        session_id=said.conversation_id,
        prompt=said.prompt if event is HookEvent.PROMPT and said.prompt else "",
        is_subagent=event_word.startswith("subagent"),
        is_continuation=bool(count),
        source=said.reason,
        folder=_folder(said),
        continuations=count if event is HookEvent.TURN_ENDED else None,
        may_drain=event is not HookEvent.TURN_ENDED or said.status == _COMPLETED,
    )


def print_offer(event: HookEvent, text: str, version: str = "") -> Print:
    """An offer: the next message of a finished turn, else context beside it.

    Raises ValueError at any other event.
    """
    if event not in OFFERS_AT:
        raise ValueError(f"no offer is printed at {event}")
    field = "followup_message"
    if event is not HookEvent.TURN_ENDED:
        field = "additional_context"
    return host_json.printed({field: text})


def print_block(event: HookEvent, text: str) -> Print:
    """The answer to a typed command; the person sees it, the model nothing.

    Raises ValueError at any event but PROMPT.
    """
    if event is not HookEvent.PROMPT:
        raise ValueError(f"no command is answered at {event}")
    return host_json.printed({"continue": False, "user_message": text})


def print_person_line(event: HookEvent, text: str) -> Print | None:
    """None: it is not known that a line at a session's start is shown."""
    return None


def is_program(facts: ProcessFacts) -> bool:
    """Is this a Cursor process, of the CLI or of the app?"""
    return is_cli(facts) or is_app(facts)


def is_cli(facts: ProcessFacts) -> bool:
    """Is this Cursor's CLI: its own node with its own script, or one binary?"""
    folder = f"{programs.program_folder(facts)}/"
    if _CLI_FOLDER not in folder:
        return False
    if programs.program_name(facts) == "cursor-agent":
        return True
    script = f"{programs.program_folder(facts)}/index.js"
    return programs.is_script_runner(facts) and script in facts.arguments


def is_app(facts: ProcessFacts) -> bool:
    """Is this one of the app's processes, whose terminals are the person's too?"""
    name, folder = programs.program_name(facts), programs.program_folder(facts)
    if _MAC_APP in folder:
        return name.startswith("Cursor")
    if _REMOTE_FOLDER in f"{folder}/":
        return name == "node"
    return name in _APP_PROGRAMS and folder.endswith(_APP_FOLDERS)


def thread_of_call(meta: Mapping[str, object]) -> str | None:
    """None: a tool call says nothing of its conversation."""
    return None


def session_of_environment(environment: Mapping[str, str]) -> str | None:
    """The conversation whose shell this is, or None where Cursor named none.

    Raises Refused for nonsense.
    """
    return host_json.session_named(environment, "CURSOR_CONVERSATION_ID", TITLE)


def _check(said: _Said, event_word: str) -> None:
    if said.hook_event_name != event_word:
        raise host_json.invalid(NAME, "named another event than the hook's own line")
    if not host_json.is_session_id(said.conversation_id):
        raise host_json.invalid(NAME, "named no conversation")
    if said.session_id not in ("", said.conversation_id):
        raise host_json.invalid(NAME, "named two conversations")
    if len(said.reason) > host_json.WORD_LIMIT:
        raise host_json.invalid(NAME, "used a word that is too long")
    if event_word == "beforeSubmitPrompt" and said.prompt is UNSET:
        raise host_json.invalid(NAME, "sent a prompt event without a prompt")
    if event_word == "stop" and not _is_count(said.loop_count):
        raise host_json.invalid(NAME, "did not say how often a hook continued this")


def _is_count(value: int | UnsetType) -> bool:
    return value is not UNSET and value >= 0


def _folder(said: _Said) -> str:
    """The first of the window's folders: only tool events name one themselves."""
    first = (said.workspace_roots or [""])[0]
    if first and not host_json.is_folder(first):
        raise host_json.invalid(NAME, "named a folder that cannot be one")
    return first
