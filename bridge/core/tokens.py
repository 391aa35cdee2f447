"""The proof that an attachment shows the server: its child's tokens.

Promises that a token is never in a repr, so never in a log or a traceback.
"""

from __future__ import annotations

from msgspec import Struct


class ChildTokens(Struct, frozen=True, forbid_unknown_fields=True):
    """The tokens of one child connection, which acts for one attachment only.

    `expires_at` is when the access token ends, in wall seconds by our own
    clock. `refresh_token` is used once: the server gives the next one.
    """

    connection_id: str
    access_token: str
    refresh_token: str
    expires_at: float

    def __repr__(self) -> str:
        return (
            f"ChildTokens(connection_id={self.connection_id!r},"
            f" expires_at={self.expires_at!r})"
        )
