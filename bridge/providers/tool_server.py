"""Our tool server among the MCP servers of a host's JSON file.

Promises that a server of our name which is not ours is never changed or removed,
and that what the person added to ours, such as their trust in its tools, stays.
"""

from __future__ import annotations

from pathlib import Path

from bridge.errors import Refused
from bridge.providers import merge
from bridge.providers.strict_json import STRICT, Dialect

_SERVER = ("mcpServers", "agentworks")


def of_template(document: dict[str, dict[str, object]]) -> object:
    """Our server as a template document has it."""
    return document[_SERVER[0]][_SERVER[1]]


def placed(
    text: str | None, path: Path, ours: object, dialect: Dialect = STRICT
) -> str:
    """The text with our server; raises Refused where another has its name."""
    there = None if text is None else merge.member(text, _SERVER, dialect)
    if text is None or there is None:
        return merge.with_member(text, _SERVER, ours, dialect)
    if not _is_ours(there, ours):
        raise Refused(
            "name_taken",
            f"{path} has an MCP server “agentworks” that is not ours, so it was not "
            "touched.",
            "If it is an older one of yours, remove it and try again.",
        )
    return text


def taken_out(text: str | None, ours: object, dialect: Dialect = STRICT) -> str | None:
    """The text without our server, if it is there."""
    if text is None or not _is_ours(merge.member(text, _SERVER, dialect), ours):
        return text
    return merge.without(text, _SERVER, dialect)


def _is_ours(there: object, ours: object) -> bool:
    if not isinstance(there, dict) or not isinstance(ours, dict):
        return False
    return all(there.get(name) == value for name, value in ours.items())
