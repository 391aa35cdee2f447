"""Antigravity's own local service: one call that writes into a conversation.

Owns that call. Promises one attempt for each offer, to this computer's own loopback
address and no other, without redirects, proxies or a second try; and that the
service's token is in no text, log or file. The call is built from published facts
(the shape that agent-peer 0.12.4 sends) and was not driven against the program,
which needs an account. It names no model, which that one reads from the chat's own
record: the service then has to take the one of the chat.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import httpx
import trio
from msgspec import Struct

from bridge.core.ids import SessionId
from bridge.core.records import OfferOutcome
from bridge.core.render import Budget
from bridge.core.routing import Parcel, Reached

ADDRESS_VARIABLE = "ANTIGRAVITY_LS_ADDRESS"
TOKEN_VARIABLE = "ANTIGRAVITY_CSRF_TOKEN"  # noqa: S105 - a name
CONVERSATION_VARIABLE = "ANTIGRAVITY_CONVERSATION_ID"

_CALL = "/exa.language_server_pb.LanguageServerService/SendUserCascadeMessage"
_ADDRESS = re.compile(r"(?:localhost|127\.0\.0\.1):([1-9][0-9]{0,4})")
_TOKEN = re.compile(r"[\x21-\x7e]{1,512}")
_HIGHEST_PORT = 65_535
SEND_S = 5.0
# Answers that say that nothing was taken: no token, no right, no such thing.
_NOT_TAKEN = frozenset({401, 403, 404})


class Access(Struct, frozen=True):
    """The port and token that one agy process gave to its own hook."""

    port: int
    token: str

    def __repr__(self) -> str:
        """Without the token, wherever it is shown."""
        return f"Access(port={self.port})"


def access_of(address: str, token: str) -> Access | None:
    """The access that these two variables give; None for anything but loopback."""
    match = _ADDRESS.fullmatch(address)
    if match is None or int(match[1]) > _HIGHEST_PORT or not _TOKEN.fullmatch(token):
        return None
    return Access(int(match[1]), token)


class AgyAgentapi:
    """A Way to one conversation.

    `access` gives what its own hook handed over last, or None once its process has
    ended.
    """

    route = "agy_agentapi"
    # No limit of the service is known: what the smallest host carries.
    budget = Budget("bytes", 9_500)
    limit = 20

    def __init__(
        self, session_id: SessionId, access: Callable[[], Access | None]
    ) -> None:
        self._session_id = session_id
        self._access = access

    @property
    def address(self) -> str:
        """Where it leads, without the token."""
        access = self._access()
        port = access.port if access is not None else 0
        return f"agy+agentapi://127.0.0.1:{port}/{self._session_id}"

    async def is_open(self) -> bool:
        """Is there an access that the living process gave?"""
        await trio.lowlevel.checkpoint()
        return self._access() is not None

    async def offer(self, parcel: Parcel) -> Reached:
        """One call; what the service did with it is only known when it says so."""
        access = self._access()
        if access is None:
            why = "The agy program of this chat has ended."
            return Reached(OfferOutcome.NOT_EMITTED, why, is_over=True)
        reached = Reached(OfferOutcome.UNKNOWN, "agy's service did not answer in time.")
        with trio.move_on_after(SEND_S):
            reached = await _send(access, self._session_id, parcel.text)
        return reached


async def _send(access: Access, session_id: SessionId, text: str) -> Reached:
    body = {
        "cascadeId": session_id,
        "items": [{"text": text}],
        "messageOrigin": "MESSAGE_ORIGIN_SDK_EXECUTABLE",
    }
    # trust_env: a proxy of the person's must never see the token.
    async with httpx.AsyncClient(
        trust_env=False, follow_redirects=False, timeout=SEND_S
    ) as client:
        try:
            async with client.stream(
                "POST",
                f"http://127.0.0.1:{access.port}{_CALL}",
                json=body,
                headers={"x-codeium-csrf-token": access.token},
            ) as response:
                return _heard(response.status_code)
        except (httpx.ConnectError, httpx.ConnectTimeout):
            why = "agy's service cannot be reached."
            return Reached(OfferOutcome.NOT_EMITTED, why, is_over=True)
        except httpx.HTTPError:
            why = "agy's service broke off before it answered."
            return Reached(OfferOutcome.UNKNOWN, why)


def _heard(status: int) -> Reached:
    if 200 <= status < 300:
        return Reached(OfferOutcome.EMITTED)
    if status in _NOT_TAKEN:
        why = f"agy's service took nothing (HTTP {status})."
        return Reached(OfferOutcome.NOT_EMITTED, why, is_over=True)
    return Reached(OfferOutcome.UNKNOWN, f"agy's service answered HTTP {status}.")
