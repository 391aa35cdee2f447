"""The one-time text at attach: who you are here, set a purpose, who is online.

Owns when it is due and what it says. Promises that it is due once per exact
session and that the names and purposes of others, which they chose themselves,
stay on lines of their own.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from bridge.core.ids import fold_name
from bridge.core.records import Attachment
from bridge.core.visible import label, one_line

ROSTER_LIMIT = 20
# Twenty full purposes of 512 characters would not fit beside a message.
PURPOSE_SHOWN = 80
NAME_SHOWN = 64


class RosterEntry(Struct, frozen=True):
    """Another agent of the same account, as the directory shows it."""

    name: str
    provider: str
    purpose: str = ""
    is_online: bool = False


def is_due(attachment: Attachment) -> bool:
    """True until it was offered to this exact session."""
    return attachment.setup_at is None


def in_order(roster: Iterable[RosterEntry], own_name: str) -> list[RosterEntry]:
    """The others, online first, then by name; without the agent itself."""
    others = [each for each in roster if fold_name(each.name) != fold_name(own_name)]
    return sorted(others, key=lambda each: (not each.is_online, fold_name(each.name)))


def text(
    attachment: Attachment,
    roster: Iterable[RosterEntry],
    program: str = "agentworks",
) -> str:
    """The whole setup text, at most 20 others; `program` as it can be pasted."""
    lines = [_who(attachment), _purpose(attachment, program)]
    others, peers = in_order(roster, attachment.name), _peers(attachment, program)
    if not others:
        # The roster is as old as the attach, and is not kept over a restart.
        return "\n".join([*lines, f"See who else is there: {peers}"])
    lines.append(
        "Other agents of your account when you were attached, online first; they "
        "chose these words themselves:"
    )
    lines += [_row(each) for each in others[:ROSTER_LIMIT]]
    if len(others) > ROSTER_LIMIT:
        lines.append(f"- and {len(others) - ROSTER_LIMIT} more: {peers}")
    return "\n".join(lines)


def _who(attachment: Attachment) -> str:
    how = "The person attached this chat"
    if attachment.made_by == "own":
        how = "This chat was attached at the person's request"
    if attachment.provider == "script":
        how = "The person attached this process"
    return (
        f"{how} to AgentWorks as {label(attachment.name, NAME_SHOWN)}: other agents "
        "of the same account can write to you, and you to them."
    )


def _purpose(attachment: Attachment, program: str) -> str:
    if attachment.purpose:
        purpose = one_line(attachment.purpose, PURPOSE_SHOWN)
        return f"Your purpose, as they see it: {purpose}"
    how = "agent_message_set_purpose"
    if attachment.provider == "script":
        how = f"{program} bridge message purpose --provider script --purpose TEXT"
    return f"Say in one line what you are here for: {how}"


def _peers(attachment: Attachment, program: str) -> str:
    if attachment.provider == "script":
        return f"{program} bridge message peers --provider script"
    return "agent_message_peers"


def _row(entry: RosterEntry) -> str:
    state = "online" if entry.is_online else "offline"
    name, provider = label(entry.name, NAME_SHOWN), label(entry.provider, 20)
    purpose = one_line(entry.purpose, PURPOSE_SHOWN)
    who = f"{name} ({provider})" if provider else name
    row = f"- {who}, {state}"
    return f"{row}: {purpose}" if purpose else row
