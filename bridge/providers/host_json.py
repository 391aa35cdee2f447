"""What a host's hook says on stdin, read strictly and within bounds.

Owns the bounds, the shape that Claude Code and Codex share, and the writing of
our answers. Promises that anything but one JSON object with the fields we need,
each of its type and within its limit, raises Invalid, and that a field which a
newer host adds changes nothing. The content is never quoted in an error.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Mapping
from typing import TypeVar

import msgspec
from msgspec import UNSET, Struct, UnsetType

from bridge.core.caller import HookEvent, HookInput
from bridge.core.render import Budget, Print
from bridge.errors import Invalid, Refused

# The hook client stops reading there too.
STDIN_LIMIT_BYTES = 8 * 1024 * 1024
FOLDER_LIMIT = 4096
WORD_LIMIT = 64
# What a host's hook carries whole, where nobody has published or seen its limit: the
# smallest that any other host has.
CAREFUL_BUDGET = Budget("bytes", 9_500)
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,127}")
# Qwen Code counts its turns behind its session's id, with hash signs between.
_TURN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:#-]{0,127}")


Shape = TypeVar("Shape", bound=Struct)


class Said(Struct, frozen=True):
    """The fields of one hook event that we read; a host may say more.

    `turn_id` is Codex's word for the turn, `prompt_id` Claude's and Qwen's. An
    `agent_id` means that a subagent is speaking, whatever else is said, and
    `cursor_version` that it is Cursor, which runs the hooks of others too. Only
    Gemini says `prompt_response`, what its model answered in the turn.
    """

    session_id: str
    hook_event_name: str
    cwd: str = ""
    prompt: str | UnsetType = UNSET
    stop_hook_active: bool | UnsetType = UNSET
    source: str = ""
    reason: str = ""
    agent_id: str | None = None
    turn_id: str = ""
    prompt_id: str = ""
    command_name: str = ""
    command_args: str = ""
    permission_mode: str | None = None
    cursor_version: object = UNSET
    prompt_response: str | None = None


def read(host: str, event_word: str, stdin: bytes) -> Said:
    """The event on a hook's stdin; `event_word` is what the hook line says it is.

    Raises Invalid for more than 8 MiB, anything that is not the JSON object we
    expect, and an event other than `event_word`.
    """
    said = decoded(host, stdin, Said)
    if said.hook_event_name != event_word:
        raise invalid(host, "named another event than the hook's own line")
    _check_bounds(host, said)
    return said


def decoded(host: str, stdin: bytes, shape: type[Shape]) -> Shape:
    """One JSON object of this shape, with a byte order mark or none before it.

    Raises Invalid for more than 8 MiB and for anything else.
    """
    if len(stdin) > STDIN_LIMIT_BYTES:
        raise invalid(host, f"said more than {STDIN_LIMIT_BYTES} bytes")
    try:
        return msgspec.json.decode(stdin.removeprefix(codecs.BOM_UTF8), type=shape)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise invalid(host, "said something we cannot read") from error


def to_input(
    host: str, events: Mapping[str, HookEvent], said: Said, is_subagent: bool
) -> HookInput:
    """The event in our words; one that is not in `events` is OTHER.

    Raises Invalid when a prompt event has no prompt, or a turn's end does not
    say whether it follows a hook's own continuation.
    """
    event = events.get(said.hook_event_name, HookEvent.OTHER)
    if event is HookEvent.PROMPT and said.prompt is UNSET:
        raise invalid(host, "sent a prompt event without a prompt")
    if event is HookEvent.TURN_ENDED and said.stop_hook_active is UNSET:
        raise invalid(host, "did not say whether a hook continued this turn")
    return HookInput(
        provider=host,
        event=event,
        session_id=said.session_id,
        prompt=said.prompt if event is HookEvent.PROMPT and said.prompt else "",
        is_subagent=is_subagent,
        is_continuation=said.stop_hook_active is True,
        source=said.source or said.reason,
        folder=said.cwd,
        turn_id=said.turn_id or said.prompt_id,
        mode=said.permission_mode or "",
    )


def printed(answer: Mapping[str, object]) -> Print:
    """An answer to the host: one JSON object on stdout and exit code 0."""
    return Print(text=msgspec.json.encode(answer))


def printed_in_ascii(answer: Mapping[str, object]) -> Print:
    """The same, for a host that reads its pipe in pieces and tears characters."""
    return Print(text=json.dumps(answer).encode())


def is_session_id(text: str) -> bool:
    """True for what we take as the name of a session: 1 to 128 plain characters."""
    return _ID.fullmatch(text) is not None


def session_named(
    environment: Mapping[str, str], variable: str, title: str
) -> str | None:
    """The session that a program's own variable names, or None where it is not set.

    Raises Refused for what is no id. `title` is what people call the program.
    """
    session_id = environment.get(variable, "")
    if not session_id:
        return None
    if not is_session_id(session_id):
        raise Refused(
            "session_unclear",
            f"{variable} names no chat of {title}, so it cannot be told whose messages "
            "these would be.",
            "Run the command in a fresh shell of the chat itself.",
        )
    return session_id


def _check_bounds(host: str, said: Said) -> None:
    if not is_session_id(said.session_id):
        raise invalid(host, "named no session")
    if said.cwd and not is_folder(said.cwd):
        raise invalid(host, "named a folder that cannot be one")
    mode = said.permission_mode or ""
    words = (said.source, said.reason, said.command_name, mode)
    if any(len(word) > WORD_LIMIT for word in words):
        raise invalid(host, "used a word that is too long")
    turns = [each for each in (said.turn_id, said.prompt_id) if each]
    are_turns = all(_TURN_ID.fullmatch(each) for each in turns)
    if not are_turns or (said.agent_id and not is_session_id(said.agent_id)):
        raise invalid(host, "used an id that cannot be one")


def is_folder(text: str) -> bool:
    """True for what can be the path of a folder."""
    return text.startswith("/") and "\0" not in text and len(text) <= FOLDER_LIMIT


def invalid(host: str, what: str) -> Invalid:
    """The error for a hook whose host `what`."""
    return Invalid(
        "hook_unreadable",
        f"A hook of {host} {what}, so it was not answered.",
        "If this goes on, look at the hook's line: agentworks bridge status",
    )
