"""What a local command may ask of the daemon.

Owns the JSON inside `call` frames: one tagged Struct for each verb, in which an
unknown field is refused. Limits of meaning, such as a message's length, are the
core's; those here only keep a request small.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct

from bridge.errors import Invalid

Line = Annotated[str, Meta(max_length=1024)]
FilePath = Annotated[str, Meta(max_length=4096)]
Text = Annotated[str, Meta(max_length=200_000)]
Cursor = Annotated[int, Meta(ge=0, le=2**53)]
WaitSeconds = Annotated[float, Meta(ge=0, le=25)]
Limit = Annotated[int, Meta(ge=1, le=100)]
Pid = Annotated[int, Meta(ge=0, le=2**31 - 1)]
Wants = tuple[Literal["at_prompt", "mid_turn", "no_wake"], ...]


class Request(
    Struct,
    frozen=True,
    forbid_unknown_fields=True,
    tag_field="verb",
    omit_defaults=True,
):
    """Base of all requests; `verb` on the wire says which one it is."""


# ---- the bridge ---------------------------------------------------------------


class Hello(Request, frozen=True, tag="hello"):
    """Is a bridge there, which version, and since when? Answer: HelloReply."""


class Status(Request, frozen=True, tag="status"):
    """Everything a person may want to know. Answer: StatusReply."""


class Stop(Request, frozen=True, tag="stop"):
    """End the bridge in order; identities are kept. Answer: StopReply."""


# ---- attachments --------------------------------------------------------------


class Prepare(Request, frozen=True, tag="prepare"):
    """What would an attach choose from? Changes nothing. Answer: PrepareReply.

    What an attach with the same choice would be refused for is refused here.
    `is_account_wide`: the person's whole account is to be set up first.
    """

    provider: Line = ""
    session_id: Line = ""
    native_pid: Pid = 0
    native_remote: Line = ""
    folder: FilePath = ""
    is_account_wide: bool = False


class Attach(Request, frozen=True, tag="attach"):
    """Bind a name to one live session. Answer: AttachReply.

    Below a provider process `session_id`, `native_pid`, `native_remote`, `tmux_pane`
    and `wants` are refused, and the session is the caller's own. `wants` None keeps
    the former wishes, an empty one is the wish for the usual. `confirm` is the
    person's yes to a held or moved attachment.
    """

    name: Line = ""
    provider: Line = ""
    session_id: Line = ""
    native_pid: Pid = 0
    native_remote: Line = ""
    tmux_socket: FilePath = ""
    tmux_pane: Line = ""
    wants: Wants | None = None
    purpose: Text = ""
    folder: FilePath = ""
    confirm: bool = False


class Detach(Request, frozen=True, tag="detach"):
    """End an attachment and remove its local state. Answer: DetachReply.

    Without a name it is the caller's own, or the only one there is.
    """

    name: Line = ""


class Agents(Request, frozen=True, tag="agents"):
    """The attachments of this computer. Answer: AgentsReply."""

    name: Line = ""


class WakeTest(Request, frozen=True, tag="test_wake"):
    """Send a live chat one harmless message. Answer: WakeReply."""

    name: Line


class WakeProgress(Request, frozen=True, tag="wake_progress"):
    """How far the last wake test came, once more than `known` steps are through.

    Waits at most a few seconds. Answer: WakeReply.
    """

    known: Annotated[int, Meta(ge=0, le=5)] = 0


# ---- the account's addresses, with the parent login ----------------------------


class MessagesRegister(Request, frozen=True, tag="messages_register"):
    """Register a name; None for connections keeps the list that is there."""

    agent: Line
    allow_connections: tuple[Line, ...] | None = None


class MessagesList(Request, frozen=True, tag="messages_list"):
    """The account's directory."""


class MessagesUnregister(Request, frozen=True, tag="messages_unregister"):
    """Remove a name for good."""

    agent: Line


class MessagesSend(Request, frozen=True, tag="messages_send"):
    """Send with the parent login; exactly one of `target` and `inbox_id`."""

    message: Text
    agent: Line = ""
    target: Line = ""
    inbox_id: Line = ""
    submission_id: Line = ""

    def __post_init__(self) -> None:
        _exactly_one(target=self.target, inbox_id=self.inbox_id)


class MessagesRead(Request, frozen=True, tag="messages_read"):
    """Read with the parent login; exactly one of `agent` and `inbox_id`."""

    agent: Line = ""
    inbox_id: Line = ""
    after: Cursor = 0
    limit: Limit = 100
    wait_s: WaitSeconds = 0

    def __post_init__(self) -> None:
        _exactly_one(agent=self.agent, inbox_id=self.inbox_id)


class MessagesState(Request, frozen=True, tag="messages_state"):
    """How far the last messages of one inbox came, without their texts."""

    inbox_id: Line


# ---- the caller's own session --------------------------------------------------


class SessionSend(Request, frozen=True, tag="session_send"):
    """Send as the attached agent; `target` is an address such as `agent:bob`."""

    provider: Line
    target: Line
    message: Text
    submission_id: Line = ""


class SessionReply(Request, frozen=True, tag="session_reply"):
    """Answer in the same inbox; exactly one of `message_id` and `inbox_id`."""

    provider: Line
    message: Text
    submission_id: Line
    message_id: Line = ""
    inbox_id: Line = ""

    def __post_init__(self) -> None:
        _exactly_one(message_id=self.message_id, inbox_id=self.inbox_id)


class SessionRead(Request, frozen=True, tag="session_read"):
    """Read by hand; moves no receipt, cursor or watermark."""

    provider: Line
    inbox_id: Line = ""
    after: Cursor = 0
    wait_s: WaitSeconds = 0


class SessionAck(Request, frozen=True, tag="session_ack"):
    """The agent's own receipt."""

    provider: Line
    message_id: Line
    delivery: Literal["admitted", "processed"]


class SessionPeers(Request, frozen=True, tag="session_peers"):
    """Who else is there."""

    provider: Line


class SessionPurpose(Request, frozen=True, tag="session_purpose"):
    """Set the one-line purpose; one change a minute."""

    provider: Line
    purpose: Text


class SessionMessageStatus(Request, frozen=True, tag="session_message_status"):
    """What is known of a sent message, by message id or submission id."""

    provider: Line
    id: Line


class SessionWatch(Request, frozen=True, tag="session_watch"):
    """Wait for mail of the caller's own chat after a sequence. Answer: WatchReply.

    It takes up to 25 s; `session_id` must be the caller's own.
    """

    session_id: Line
    after: Cursor = 0


AnyRequest = (
    Hello
    | Status
    | Stop
    | Prepare
    | Attach
    | Detach
    | Agents
    | WakeTest
    | WakeProgress
    | MessagesRegister
    | MessagesList
    | MessagesUnregister
    | MessagesSend
    | MessagesRead
    | MessagesState
    | SessionSend
    | SessionReply
    | SessionRead
    | SessionAck
    | SessionPeers
    | SessionPurpose
    | SessionMessageStatus
    | SessionWatch
)


READS = (
    Hello,
    Status,
    Prepare,
    Agents,
    WakeProgress,
    MessagesList,
    MessagesRead,
    MessagesState,
    SessionRead,
    SessionPeers,
    SessionMessageStatus,
    SessionWatch,
)
"""The requests that change nothing and may be asked again at will."""

_decoder = msgspec.json.Decoder(AnyRequest)


def encode_request(request: Request) -> bytes:
    """The body of a `call` frame."""
    return msgspec.json.encode(request)


def decode_request(body: bytes) -> AnyRequest:
    """The request in a `call` frame's body; raises Invalid."""
    try:
        return _decoder.decode(body)
    except (msgspec.MsgspecError, RecursionError, ValueError) as error:
        raise Invalid(
            "bad_request",
            f"The bridge does not understand this request: {error}.",
            "Use a command of the same version as the bridge.",
        ) from error


def _exactly_one(**given: str) -> None:
    if sum(map(bool, given.values())) != 1:
        raise ValueError(f"exactly one of {' and '.join(given)} is needed")
