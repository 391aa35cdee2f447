"""The messaging tools of an attached agent, each defined once.

Owns name, description, arguments and limits of each tool. Promises that no tool
attaches, detaches, registers or uses the person's login, and that the schema a
host is shown and the check that a call goes through are made from one definition.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from bridge.core.facts import FACTS
from bridge.core.ids import MESSAGE_LIMIT, PURPOSE_LIMIT, SUBMISSION_ID_LIMIT
from bridge.errors import Invalid

VERSION = "1"
"""What a host is told of this catalog; it changes when a tool does."""

_FACTS = {fact.key: fact.sentence for fact in FACTS}
_ID_LIMIT = 128

Message = Annotated[
    str,
    Meta(min_length=1, max_length=MESSAGE_LIMIT, description="Plain text."),
]
Submission = Annotated[
    str,
    Meta(
        pattern="^[ -~]+$",
        max_length=SUBMISSION_ID_LIMIT,
        description="An id that you choose for this one message. After an unknown "
        "outcome call again with the same id and text: it cannot arrive twice.",
    ),
]
GivenId = Annotated[str, Meta(max_length=_ID_LIMIT)]


class Arguments(Struct, frozen=True, forbid_unknown_fields=True):
    """Base of what a tool takes; a field's default is what leaving it out means."""


class Send(Arguments, frozen=True):
    """Arguments of agent_message_send."""

    target: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=_ID_LIMIT,
            description="agent:NAME, with a name from agent_message_peers.",
        ),
    ]
    message: Message
    submission_id: Submission


class Reply(Arguments, frozen=True):
    """Arguments of agent_message_reply; exactly one of the two ids."""

    message: Message
    submission_id: Submission
    message_id: Annotated[
        GivenId, Meta(description="The message you answer, or give inbox_id.")
    ] = ""
    inbox_id: Annotated[
        GivenId, Meta(description="Its conversation, instead of message_id.")
    ] = ""

    def __post_init__(self) -> None:
        if bool(self.message_id) == bool(self.inbox_id):
            raise ValueError("Exactly one of `message_id` and `inbox_id` is needed")


class Read(Arguments, frozen=True):
    """Arguments of agent_message_read."""

    inbox_id: Annotated[
        GivenId, Meta(description="One conversation; empty for the whole mailbox.")
    ] = ""
    after: Annotated[
        int,
        Meta(
            ge=0,
            le=2**53,
            description="next_cursor of the page before: of the same conversation, or "
            "of the mailbox.",
        ),
    ] = 0
    start: Annotated[
        int,
        Meta(
            ge=0,
            le=MESSAGE_LIMIT,
            description="Characters of the first message to leave out, where a part "
            "of it was shown before.",
        ),
    ] = 0
    limit: Annotated[int, Meta(ge=1, le=100, description="Messages in a page.")] = 100
    wait_s: Annotated[
        int, Meta(ge=0, le=25, description="Seconds to wait for a first message.")
    ] = 0


class Acknowledge(Arguments, frozen=True):
    """Arguments of agent_message_ack."""

    message_id: Annotated[GivenId, Meta(min_length=1)]
    delivery: Annotated[
        Literal["admitted", "processed"],
        Meta(extra_json_schema={"type": "string"}),  # some hosts want every type
    ]


class Peers(Arguments, frozen=True):
    """agent_message_peers takes none."""


class SetPurpose(Arguments, frozen=True):
    """Arguments of agent_message_set_purpose."""

    purpose: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=PURPOSE_LIMIT,
            description="One line: what this chat is for.",
        ),
    ]


class Status(Arguments, frozen=True):
    """Arguments of agent_message_status."""

    id_: Annotated[
        GivenId,
        Meta(description="A message id or submission id of yours; empty: this chat."),
    ] = msgspec.field(default="", name="id")


class Tool(Struct, frozen=True):
    """One tool; `verb` is its name inside the bridge and in `bridge message`.

    `is_read_only` is what hosts are told: such a tool changes nothing anywhere.
    """

    name: str
    verb: str
    summary: str
    fact_keys: tuple[str, ...]
    arguments: type[Arguments]
    is_read_only: bool = False

    @property
    def description(self) -> str:
        """What the agent reads: what the tool does, then the facts that concern it."""
        return " ".join((self.summary, *(_FACTS[key] for key in self.fact_keys)))


TOOLS = (
    Tool(
        "agent_message_send",
        "send",
        "Send a message to another agent of the same person, by its name.",
        ("final_text", "receipt"),
        Send,
    ),
    Tool(
        "agent_message_reply",
        "reply",
        "Reply to a message of another agent.",
        ("reply", "replies_optional"),
        Reply,
    ),
    Tool(
        "agent_message_read",
        "read",
        "Read messages of this chat by hand, oldest first; nothing is acknowledged "
        "by reading. Messages also come by themselves at the end of a turn.",
        ("permission", "deduplicate"),
        Read,
        is_read_only=True,
    ),
    Tool(
        "agent_message_ack",
        "ack",
        "Tell the sender how far a message came.",
        ("acknowledge", "receipt"),
        Acknowledge,
    ),
    Tool(
        "agent_message_peers",
        "peers",
        "List the other agents of the same person: names, programs, purposes, and "
        "who is connected.",
        (),
        Peers,
        is_read_only=True,
    ),
    Tool(
        "agent_message_set_purpose",
        "set_purpose",
        "Set the one line that other agents see beside this chat's name, at most one "
        "change a minute.",
        ("purpose",),
        SetPurpose,
    ),
    Tool(
        "agent_message_status",
        "status",
        "Tell what is known of one message that you sent (its receipt, and since when "
        "its recipient is offline), or of this chat's own attachment.",
        ("receipt",),
        Status,
        is_read_only=True,
    ),
)
_BY_NAME = {tool.name: tool for tool in TOOLS}


def tool_named(name: str) -> Tool:
    """The tool of that name; raises Invalid with the names there are."""
    if name not in _BY_NAME:
        raise Invalid(
            "no_such_tool",
            "The bridge has no tool of that name, so nothing was done.",
            f"There are: {', '.join(_BY_NAME)}.",
        )
    return _BY_NAME[name]


def schema(tool: Tool) -> dict[str, Any]:
    """The tool's arguments as one JSON schema without references."""
    _, shapes = msgspec.json.schema_components([tool.arguments])
    whole = dict(shapes[tool.arguments.__name__])
    for unwanted in ("title", "description"):
        whole.pop(unwanted, None)
    return whole


def check(tool: Tool, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """All arguments with their defaults, space around texts removed.

    The keys are those of the tool's Struct. Raises Invalid with what is wrong.
    """
    trimmed = {
        name: value.strip() if isinstance(value, str) else value
        for name, value in arguments.items()
    }
    try:
        given = msgspec.convert(trimmed, tool.arguments)
    except msgspec.ValidationError as error:
        raise Invalid(
            "bad_arguments",
            f"{tool.name} was called wrongly, so nothing was done: {error}.",
            "Correct the arguments and call it again.",
        ) from error
    return msgspec.structs.asdict(given)


def listing() -> bytes:
    """The result of `tools/list` as JSON, as hosts are shown it."""
    return msgspec.json.encode({"tools": [_shown(tool) for tool in TOOLS]})


def _shown(tool: Tool) -> dict[str, Any]:
    return {
        "name": tool.name,
        "description": tool.description,
        "inputSchema": schema(tool),
        "annotations": {
            "readOnlyHint": tool.is_read_only,
            "destructiveHint": False,
            "idempotentHint": True,
        },
    }
