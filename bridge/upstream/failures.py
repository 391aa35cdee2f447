"""What a failed call means, in our words.

Owns the one translation of httpx's errors and of HTTP statuses. Promises that a
call that may have done something is never reported as if it had not; and that a
server's words are one line that neither drives a terminal nor speaks as a host.
"""

from __future__ import annotations

import re
from typing import Any

import httpx
import msgspec

from bridge.core.reconnect import retry_after
from bridge.core.visible import one_line
from bridge.errors import BridgeError, Invalid, Refused, Unavailable, Unknown

# What a server may say to people and agents through us.
MESSAGE_LIMIT = 500
# True whoever asked: what an attached chat sent is kept, a person's command is not.
ASKED_AGAIN = (
    "What the bridge keeps goes out by itself; a command of your own has to be run "
    "again."
)
_CODE = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,63}")

_NOT_SENT_BECAUSE: dict[type[Exception], str] = {
    httpx.ConnectError: "no connection could be made",
    httpx.ConnectTimeout: "it did not answer in time",
    httpx.PoolTimeout: "too many calls are under way",
    httpx.UnsupportedProtocol: "its address is of no kind that can be used",
    httpx.ProxyError: "the proxy did not let us through",
}
_LATER = (408, 425, 429, 503)
# Without a status our own proof is missing.
_PROOF_STATUS = (None, 401)
_LEASE_STATUS = (403, 404, 409, 410)
HELD = "held"


class ErrorBody(msgspec.Struct, frozen=True):
    """The server's `{"error": ...}`: an object, or OAuth's bare code."""

    error: dict[str, Any] | str


def not_reached(error: Exception) -> Unavailable:
    """Certainly nothing was sent."""
    why = _NOT_SENT_BECAUSE.get(type(error), "no connection could be made")
    return Unavailable(
        "server_unreachable",
        f"The message server cannot be reached: {why}.",
        ASKED_AGAIN,
    )


def lost(is_repeatable: bool, what: str) -> BridgeError:
    """The request went out, perhaps; its answer did not come."""
    if is_repeatable:
        return Unavailable(
            "reply_lost",
            f"The message server did not answer ({what}).",
            ASKED_AGAIN,
        )
    return Unknown(
        "outcome_unknown",
        f"The message server may or may not have done it ({what}).",
        "Repeat it only with the same submission id.",
    )


def ends_lease(error: Refused) -> bool:
    """A final no to the lease; any other one is about that single request."""
    if error.code == HELD or error.status in _PROOF_STATUS:
        return True
    return error.status in _LEASE_STATUS and is_servers_word(error)


def is_servers_word(error: Refused) -> bool:
    """False for a page of something between us and the server, such as a proxy."""
    return error.code != _codeless(error.status)


def is_answer(error: Refused) -> bool:
    """The server's own no to this very call; a refused or missing login is none."""
    return error.status not in _PROOF_STATUS and is_servers_word(error)


def from_exception(error: httpx.HTTPError, is_repeatable: bool) -> BridgeError:
    """The error for what httpx raised."""
    if isinstance(error, tuple(_NOT_SENT_BECAUSE)):
        return not_reached(error)
    return lost(is_repeatable, type(error).__name__)


def nonsense(what: str) -> Invalid:
    """The server sent what no server of this kind sends."""
    return Invalid(
        "bad_reply",
        f"The message server's answer makes no sense ({what}).",
        "Check that the address is an AgentWorks server.",
    )


def from_reply(
    reply: httpx.Response, content: bytes, wall_s: float, is_repeatable: bool
) -> BridgeError:
    """The error for an answer whose status is not 200."""
    status = reply.status_code
    code, message, details = _said(status, content)
    if status in _LATER:
        return Unavailable(code, message, retry_after_s=_floor(reply, wall_s))
    if 400 <= status < 500:
        return Refused(code, message, status=status, details=details)
    if 300 <= status < 400:
        return Unavailable(
            "redirected",
            "The message server sent us elsewhere; that is not followed, since the"
            " other place would get the token.",
            "Check the server's address, and whether this network asks for a login.",
        )
    if status >= 500:
        known = lost(is_repeatable, f"status {status}")
        if isinstance(known, Unavailable):
            known.retry_after_s = _floor(reply, wall_s)
        return known
    return nonsense(f"status {status}")


def _floor(reply: httpx.Response, wall_s: float) -> float | None:
    value = reply.headers.get("retry-after")
    if value is None:
        return None
    return retry_after(value, wall_s, reply.headers.get("date", ""))


def _said(status: int, content: bytes) -> tuple[str, str, dict[str, Any]]:
    """Code, message and further facts of an error body, whatever it holds."""
    try:
        body = msgspec.json.decode(content, type=ErrorBody).error
    except (msgspec.DecodeError, RecursionError):
        body = {}
    facts = {"code": body} if isinstance(body, str) else dict(body)
    code = _text(facts.pop("code", None))
    if _CODE.fullmatch(code) is None:
        code = _codeless(status)
    said = one_line(_text(facts.pop("message", None)), MESSAGE_LIMIT)
    message = said or f"The message server answered {status} ({code})."
    return code, message, facts


def _codeless(status: int | None) -> str:
    return f"http_{status}"


def _text(value: object) -> str:
    return value[:MESSAGE_LIMIT].strip() if isinstance(value, str) else ""
