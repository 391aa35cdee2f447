"""How the daemon answers a local command.

Owns the JSON inside `reply` frames: `{"ok": ...}` or `{"error": ...}`. Answers are
read tolerantly, since a later daemon may say more than this command knows. The
answers of `messages_...` and `session_...` are the server's and the tools' own
JSON objects and have no Struct here.
"""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from bridge.errors import EXIT_FAILED, BridgeError, Invalid, Refused, Unavailable

Answer = TypeVar("Answer")


class HelloReply(Struct, frozen=True):
    """A living bridge; `state` is starting, running or stopping."""

    version: str
    pid: int
    state: str
    server: str
    uptime_s: float


class AgentRow(Struct, frozen=True):
    """One attachment as a person sees it.

    `session` is the end of the session id, of a script its pid and start; `why`
    says what waiting mail waits for, or that no server is there; `note` is what the
    person is to know of its state; `not_live` why no mail can come, empty for a live
    chat.
    `unacknowledged` counts the messages that were offered, perhaps in vain, and
    that its agent has said nothing of. `last_contact_s` is seconds ago;
    `oldest_unacknowledged_s` is how long the longest of those has been so; None
    for never.
    """

    name: str
    provider: str
    session: str
    state: str
    route: str
    purpose: str = ""
    pending: int = 0
    unacknowledged: int = 0
    oldest_unacknowledged_s: float | None = None
    last_contact_s: float | None = None
    why: str = ""
    note: str = ""
    not_live: str = ""


class StatusReply(Struct, frozen=True):
    """The bridge at a glance; `waiting` holds one sentence for each cause.

    `told` is what the person was told last, oldest first, each with its time.
    `last_privileged` names the last verb that only the person may use, with its
    time and caller, empty when there was none.
    """

    version: str
    pid: int
    state: str
    server: str
    uptime_s: float
    attachments: tuple[AgentRow, ...] = ()
    waiting: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    last_privileged: str = ""
    told: tuple[str, ...] = ()


class StopReply(Struct, frozen=True):
    """The bridge is stopping; when the connection closes, it has let go."""

    pid: int


class SessionRow(Struct, frozen=True):
    """A live session that an attach could choose.

    `wake` is what the person is told before, where messages may start turns in it.
    """

    provider: str
    session_id: str
    pid: int
    folder: str = ""
    attached_as: str = ""
    note: str = ""
    wake: str = ""


class PrepareReply(Struct, frozen=True):
    """What an attach would choose from; `caller` is person or own."""

    caller: str
    sessions: tuple[SessionRow, ...] = ()
    notes: tuple[str, ...] = ()


class AttachReply(Struct, frozen=True):
    """The name is bound; `notes` are sentences for whoever asked."""

    name: str
    attachment_id: str
    provider: str
    session_id: str
    state: str
    route: str
    notes: tuple[str, ...] = ()


class DetachReply(Struct, frozen=True):
    """The name is free of its session; `queued` are submissions never sent."""

    name: str
    queued: tuple[str, ...] = ()


class AgentsReply(Struct, frozen=True):
    """The attachments of this computer."""

    agents: tuple[AgentRow, ...] = ()


class WakeStep(Struct, frozen=True):
    """One step of a wake test: when it was through, in seconds from the send."""

    passed_s: float
    note: str = ""


class WakeReply(Struct, frozen=True):
    """How far a wake test came: accepted, kept, offered, seen, acknowledged.

    `is_over`: that was the last step, or the next one has not come in time.
    """

    name: str
    steps: tuple[WakeStep, ...] = ()
    is_over: bool = False


class ErrorBody(Struct, frozen=True):
    """A refusal; `exit` is what the command ends with."""

    code: str
    message: str
    hint: str = ""
    exit: int = EXIT_FAILED


class _Ok(Struct, frozen=True):
    ok: Any


class _Failed(Struct, frozen=True):
    error: ErrorBody


class _Reply(Struct, frozen=True):
    ok: msgspec.Raw = msgspec.Raw(b"")
    error: ErrorBody | None = None


_decoder = msgspec.json.Decoder(_Reply)


def encode_ok(answer: object) -> bytes:
    """The body of a `reply` frame that says yes."""
    return msgspec.json.encode(_Ok(answer))


class Waiting(Struct, frozen=True):
    """One message that waits: its sequence, and who sent it."""

    sequence: int
    sender: str


class WatchReply(Struct, frozen=True):
    """What waits now; nothing after up to 25 s. `is_live`: watching on makes sense."""

    provider: str
    is_live: bool
    waiting: tuple[Waiting, ...] = ()


def encode_error(error: BridgeError) -> bytes:
    """The body of a `reply` frame that says no."""
    body = ErrorBody(error.code, error.message, error.hint, error.exit_code)
    return msgspec.json.encode(_Failed(body))


def decode_reply(body: bytes) -> bytes:
    """The JSON text of `ok`; an `error` is raised as it was meant, junk as Invalid."""
    try:
        reply = _decoder.decode(body)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise _not_a_bridge() from error
    if reply.error is not None:
        raise _raised(reply.error)
    ok = bytes(reply.ok)
    if not ok:
        raise _not_a_bridge()
    return ok


def decode_answer(ok: bytes, answer: type[Answer]) -> Answer:
    """The JSON text of `ok` as one of the answer Structs; raises Invalid."""
    try:
        return msgspec.json.decode(ok, type=answer)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise _not_a_bridge() from error


def _raised(error: ErrorBody) -> BridgeError:
    if error.exit == Unavailable.exit_code:
        return Unavailable(error.code, error.message, error.hint)
    return Refused(error.code, error.message, error.hint, exit_code=error.exit)


def _not_a_bridge() -> Invalid:
    return Invalid(
        "not_a_bridge",
        "What answered is not this version's bridge.",
        "Restart it: agentworks bridge restart",
    )
