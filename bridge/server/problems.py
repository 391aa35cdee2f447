"""What the server answers instead of a result: one class, one envelope.

Owns the error envelope and the wording that several calls share. Promises that
"unknown" and "denied" read the same, and that no answer repeats a token or a
message body.
"""

from __future__ import annotations

from typing import Any

import msgspec

from bridge.errors import Refused


class Problem(Refused):
    """An answer other than 200: status, stable code, a sentence, what to do.

    `extras` are further keys of the error object (`nearest`, `holder`, `state`).
    `retry_after_s` becomes the Retry-After header, rounded up to whole seconds.
    """

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        hint: str = "",
        *,
        extras: dict[str, Any] | None = None,
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(code, message, hint, status)
        self.http_status = status
        self.extras = extras or {}
        self.retry_after_s = retry_after_s

    def envelope(self) -> bytes:
        """`{"error":{"code","message",…}}` as JSON."""
        error = {"code": self.code, "message": self.sentence(), **self.extras}
        return msgspec.json.encode({"error": error})


def not_found(
    message: str = "There is nothing here that you may use.",
    nearest: list[str] | None = None,
) -> Problem:
    """404; the text never tells an unknown thing from one that is not yours."""
    hint = f"Did you mean {' or '.join(nearest)}?" if nearest else ""
    if nearest == []:
        hint = (
            "List the names first: agentworks messages list, or for an agent"
            " agent_message_peers."
        )
    extras = {} if nearest is None else {"nearest": nearest}
    return Problem(404, "not_found", message, hint, extras=extras)


def invalid_arguments(message: str) -> Problem:
    """400: the request does not have the form of this call."""
    return Problem(400, "invalid_arguments", message)


def invalid_token() -> Problem:
    """401: unknown, expired and revoked tokens read the same."""
    return Problem(
        401,
        "invalid_token",
        "This token is not valid here, or no longer.",
        "Refresh it once; if that is refused, the person has to attach or sign in.",
    )


def insufficient_scope(message: str) -> Problem:
    """403: the connection is good, but not for this call."""
    return Problem(403, "insufficient_scope", message)


def gone(state: str) -> Problem:
    """410: this lease is over for good."""
    return Problem(
        410,
        "gone",
        f"This attachment is over: it was {state}.",
        "The person can attach the session again.",
        extras={"state": state},
    )


def wrong_cursor(kind: str) -> Problem:
    """422: the two kinds of cursor were interchanged."""
    return Problem(
        422,
        "wrong_cursor",
        f"This is not a {kind} cursor.",
        "Mailbox and conversation cursors differ; 0 starts both.",
    )
