"""How an attachment stands, in a person's words: the table of `agents`.

Owns the columns, the words for each way that mail comes, and why a chat is not
live. Promises that every name, purpose and address in them is on one line and safe
to show on a terminal.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from bridge.core.visible import label, one_line

ROWS_IN_CHAT = 20
HOOKS_NOT_LOADED = "hooks not loaded yet"
"""Where `agents` shows the route of a chat that no hook was heard from."""

NOT_TRUSTED = "written, not yet trusted"
FOLDER_NOT_TRUSTED = "folder not trusted"
NOT_WRITTEN = "hooks not in its folder"
_PURPOSE_SHOWN = 60

_AT_ONCE = {
    "claude+session": "the chat's own inbox",
    "claude+channel": "our channel",
    "unix": "Codex's app server",
    "desktop+unix": "the desktop app",
    "pi+extension": "our extension in it",
    "opencode+extension": "our extension in it",
    "qwen+input": "its input file",
    "agy+agentapi": "its agent API",
    "tmux": "a line typed in its terminal",
}


class AgentLine(Protocol):
    """What a row of the agents table needs to know of one attachment."""

    @property
    def name(self) -> str: ...
    @property
    def provider(self) -> str: ...
    @property
    def session(self) -> str: ...
    @property
    def state(self) -> str: ...
    @property
    def route(self) -> str: ...
    @property
    def purpose(self) -> str: ...
    @property
    def pending(self) -> int: ...
    @property
    def why(self) -> str: ...
    @property
    def unacknowledged(self) -> int: ...
    @property
    def oldest_unacknowledged_s(self) -> float | None: ...
    @property
    def last_contact_s(self) -> float | None: ...
    @property
    def not_live(self) -> str: ...


# ---- how mail comes ------------------------------------------------------------------


def route_words(route: str) -> str:
    """A row's route for people: `hook`, or the address of a native way."""
    if route == "hook":
        return "when a turn ends"
    scheme, mark, _ = route.partition("://")
    if not mark:
        return label(route)
    return f"at once, by {_AT_ONCE.get(scheme) or label(scheme)}"


def stopped(seconds: float | None, is_gone: bool) -> str:
    """Why an offline chat is not live, and for how long."""
    what = "stopped" if is_gone else "chat left"
    return what if seconds is None else f"{what}, offline for {duration(seconds)}"


# ---- mail ---------------------------------------------------------------------------


def waiting(count: int, why: str) -> str:
    """`3 waiting, no turn has ended`; empty when nothing waits."""
    if count == 0:
        return ""
    reason = one_line(why, _PURPOSE_SHOWN)
    return f"{count} waiting, {reason}" if reason else f"{count} waiting"


def unacknowledged(count: int, oldest_s: float | None) -> str:
    """`2 unacknowledged for 5 min`; empty when every offer was answered."""
    if count == 0:
        return ""
    age = "" if oldest_s is None else f" for {duration(oldest_s)}"
    return f"{count} unacknowledged{age}"


def duration(seconds: float) -> str:
    """`5 min`: the time in its largest whole unit."""
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= size:
            return f"{int(seconds // size)} {unit}"
    return f"{int(seconds)} s"


# ---- the table ---------------------------------------------------------------------


def agents_table(rows: Sequence[AgentLine], limit: int = ROWS_IN_CHAT) -> str:
    """The attachments of this computer, at most `limit` of them, in columns."""
    if not rows:
        return "No chat of this computer is attached."
    head = (
        "NAME",
        "PROVIDER",
        "SESSION",
        "STATE",
        "ROUTE",
        "CONTACT",
        "MAIL",
        "PURPOSE",
    )
    table = [head, *map(_cells, rows[:limit])]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    lines = ["  ".join(map(str.ljust, cells, widths)).rstrip() for cells in table]
    if len(rows) > limit:
        lines.append(f"and {len(rows) - limit} more: agentworks agents")
    return "\n".join(lines)


def _cells(row: AgentLine) -> tuple[str, ...]:
    return (
        label(row.name),
        label(row.provider),
        label(row.session),
        label(row.state),
        label(row.not_live or route_words(row.route)),
        "-" if row.last_contact_s is None else duration(row.last_contact_s),
        _mail(row) or "-",
        one_line(row.purpose, _PURPOSE_SHOWN),
    )


def _mail(row: AgentLine) -> str:
    mail = waiting(row.pending, row.why) or one_line(row.why, _PURPOSE_SHOWN)
    offered = unacknowledged(row.unacknowledged, row.oldest_unacknowledged_s)
    return "; ".join(filter(None, (mail, offered)))
