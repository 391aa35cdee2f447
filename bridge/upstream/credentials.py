"""The proof that goes with a call, renewed when it ends.

Promises one renewal at a time for one attachment, whoever asks (stream or
call); that new tokens are saved before they are used; that a renewal which the
server may have seen is never cut short by cancellation; and that a refused
renewal is final, so that no number of callers makes a storm of it.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, suppress
from typing import Protocol

import trio
from msgspec.structs import replace

from bridge.clock import Clock
from bridge.core.ids import AttachmentId
from bridge.core.tokens import ChildTokens
from bridge.errors import BridgeError, Refused
from bridge.upstream.clients import Server
from bridge.upstream.failures import is_servers_word, nonsense
from bridge.upstream.shapes import Grant
from bridge.upstream.transfer import Question, ask

TOKEN_PATH = "/api/oauth/cli/token"  # noqa: S105 - a path
CLIENT_ID = "agentworks-cli"

# Renewed this long before the end, so that no call meets an ended token.
RENEW_BEFORE_S = 300.0
# While the old token still holds, a failed renewal is not worth a delay each call.
EARLY_PAUSE_S = 30.0


_FINAL = (400, 401, 403)


class Credential(Protocol):
    """What a caller shows the server."""

    async def token(self) -> str:
        """The token to use now."""
        ...

    async def renewed(self, refused: str) -> str:
        """Another token after the server refused this one; raises Refused."""
        ...


class FixedToken:
    """A token that never changes: the embedded server's parent."""

    def __init__(self, token: str) -> None:
        self._token = token

    async def token(self) -> str:
        """See Credential."""
        return self._token

    async def renewed(self, refused: str) -> str:
        """See Credential."""
        raise refusal(
            "the login is no longer valid",
            "With the bridge's own server, restart it: agentworks bridge restart. With"
            " another one, put a new login into the settings file first.",
        )


class ReadToken:
    """A token in a file: a server that starts alone leaves a new one each time.

    `read` gives the token that is there now and raises BridgeError.
    """

    def __init__(self, read: Callable[[], str]) -> None:
        self._read = read
        self._token = read()

    async def token(self) -> str:
        """See Credential."""
        return self._token

    async def renewed(self, refused: str) -> str:
        """See Credential; raises also what reading raises."""
        if self._token == refused:
            self._token = self._read()
        if self._token == refused:
            raise refusal(
                "the login in its file is no longer valid",
                "Start that server again, with the same state folder.",
            )
        return self._token


class TokenKeeper(Protocol):
    """Where child tokens live: the lease files."""

    async def read(self, attachment_id: AttachmentId) -> ChildTokens | None:
        """The saved tokens, or None."""
        ...

    async def save(self, attachment_id: AttachmentId, tokens: ChildTokens) -> None:
        """Replace them; on the disk when this returns."""
        ...

    def locked(
        self, attachment_id: AttachmentId
    ) -> AbstractAsyncContextManager[object]:
        """Hold them against every other process."""
        ...


class ChildCredential:
    """The tokens of one attachment, kept fresh."""

    def __init__(
        self,
        server: Server,
        attachment_id: AttachmentId,
        tokens: ChildTokens,
        keeper: TokenKeeper,
        clock: Clock,
    ) -> None:
        self._server = server
        self._attachment_id = attachment_id
        self._tokens = tokens
        self._keeper = keeper
        self._clock = clock
        self._lock = trio.Lock()
        self._refusal: Refused | None = None
        self._unsaved: ChildTokens | None = None
        self._next_early_at = 0.0

    async def token(self) -> str:
        """The access token; renewed first when it is about to end.

        Raises Unavailable or Refused only when the old one has surely ended.
        """
        left_s = self._tokens.expires_at - self._clock.wall()
        if left_s <= 0:
            return await self.renewed(self._tokens.access_token)
        if left_s < RENEW_BEFORE_S and self._clock.running() >= self._next_early_at:
            self._next_early_at = self._clock.running() + EARLY_PAUSE_S
            with suppress(BridgeError):
                return await self.renewed(self._tokens.access_token)
        return self._tokens.access_token

    async def renewed(self, refused: str) -> str:
        """A token other than `refused`, after at most one renewal.

        Raises Refused (401) when the server wants the person, Unavailable when
        it could not be asked, and what saving raises; the old tokens then stand.
        """
        async with self._lock:
            if self._tokens.access_token == refused:
                if self._refusal is not None:
                    raise self._refusal.with_traceback(None)
                # Crash: the server counts the old refresh token as used; giving
                # up before the new one is saved would lose the connection
                # (test_a_cancelled_renewal_is_still_saved).
                with trio.CancelScope(shield=True):
                    await self._renew()
        return self._tokens.access_token

    async def _renew(self) -> None:
        async with self._keeper.locked(self._attachment_id):
            saved = await self._keeper.read(self._attachment_id)
            if saved is not None and saved.access_token != self._tokens.access_token:
                self._tokens = saved  # another process renewed it
                self._unsaved = None
                return
            # A renewal that found no room is not asked for again: the server would
            # take the second use of its refresh token for theft
            # (test_tokens_that_found_no_room_are_saved_and_used_later).
            if self._unsaved is None:
                grant = await self._refreshed()
                fresh = tokens_of(grant, self._clock.wall())
                self._unsaved = replace(fresh, connection_id=self._tokens.connection_id)
            await self._keeper.save(self._attachment_id, self._unsaved)
            self._tokens, self._unsaved = self._unsaved, None

    async def _refreshed(self) -> Grant:
        form = {
            "grant_type": "refresh_token",
            "refresh_token": self._tokens.refresh_token,
            "client_id": CLIENT_ID,
        }
        question = Question("POST", TOKEN_PATH, form=form)
        try:
            return await ask(self._server, question, Grant, self._clock)
        except Refused as error:
            is_page = error.status != 401 and not is_servers_word(error)
            if error.status not in _FINAL or is_page:
                raise nonsense(f"a renewal with {error.status}") from error
            self._refusal = refusal(
                "the session's own connection has ended or was revoked",
                "Attach the session again.",
            )
            raise self._refusal from error


def tokens_of(grant: Grant, wall_s: float) -> ChildTokens:
    """What to keep of a grant that was received now."""
    return ChildTokens(
        grant.connection_id,
        grant.access_token,
        grant.refresh_token,
        wall_s + grant.expires_in,
    )


def refusal(why: str, hint: str) -> Refused:
    """The server takes no token of ours any more."""
    return Refused(
        "token_refused", f"The message server refused us: {why}.", hint, status=401
    )
