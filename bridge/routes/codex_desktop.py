"""Codex's desktop app: an idle chat of it gets a turn with untrusted content.

Owns what is handed to the app and what its answers mean. Promises one attempt for
each offer, to the client that owns exactly this chat and takes untrusted content
from apps; the chat's own settings and permissions stay. See codex_ipc for how
little of this could be tried.

The app refuses such content while a turn runs, before it takes any of it; its way
into a running turn takes only what the person said, so it is not used. That no is
of the moment: the message waits for the chat's hooks, and later ones may come this
way. Codex keeps a tool's output up to 12,000 bytes whole, so a long part is several.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import msgspec
import trio

from bridge.core.ids import SessionId
from bridge.core.records import OfferOutcome
from bridge.core.render import Budget
from bridge.core.routing import Parcel, Reached
from bridge.errors import BridgeError
from bridge.peer import Peer
from bridge.routes.codex_app_server import pieces
from bridge.routes.codex_ipc import Answer, CodexIpc, gone, read, refused

BUDGET = Budget("bytes", 96 * 1024)
REACH_S = 2.5
HAND_S = 3.0
OUTPUT_BYTES = 11_000
BUSY = "App context must wait until the current turn finishes"
"""The app's own words for a chat that is at work; nothing of it was taken."""

# Nobody owns the chat any more, or its owner takes no such content.
_SURELY_NOT = frozenset({BUSY, "no-client-found", "untrusted-app-input-unsupported"})
# The label that the app itself gives to what comes from other apps.
LABEL = "Respond to the user input in the context of our conversation."
_PLACEHOLDER = "codex-untrusted-app-input:"
_SPACE, _NAME = "agentworks", "agent_message"


class _Capability(msgspec.Struct, frozen=True, rename="camel"):
    supports_untrusted_app_input: bool


class _Turn(msgspec.Struct, frozen=True):
    id: str


class _TurnStarted(msgspec.Struct, frozen=True):
    turn: _Turn


class _Started(msgspec.Struct, frozen=True):
    result: _TurnStarted


class CodexDesktop:
    """A Way to one chat of the app that listens at `path`.

    `is_app` says whether the process that listens there is the one that was meant.
    """

    route = "codex_desktop"
    budget = BUDGET
    limit = 20

    def __init__(
        self,
        session_id: SessionId,
        path: str,
        is_app: Callable[[Peer], bool],
        random_bytes: Callable[[int], bytes],
    ) -> None:
        self._session_id = session_id
        self._path = path
        self._is_app = is_app
        self._random_bytes = random_bytes
        self.address = f"desktop+unix://{path}"

    async def is_open(self) -> bool:
        """The app owns this chat and takes untrusted content for it."""
        try:
            await self.check()
        except BridgeError:
            return False
        return True

    async def check(self) -> None:
        """The same; raises Refused or Unavailable, which say why not."""
        app, _ = await self._reach()
        await app.close()

    async def offer(self, parcel: Parcel) -> Reached:
        """Hand it over to the chat's owner, in one request."""
        try:
            app, owner = await self._reach()
        except BridgeError as error:
            return Reached(OfferOutcome.NOT_EMITTED, error.message, is_over=True)
        async with app:
            with trio.move_on_after(HAND_S):
                return await _start_turn(app, owner, parcel)
        return _unknown("it did not answer in time")

    async def _reach(self) -> tuple[CodexIpc, str]:
        with trio.move_on_after(REACH_S):
            app = await CodexIpc.open(self._path, self._is_app, self._random_bytes)
            try:
                return app, await self._owner(app)
            except BaseException:
                await app.close()
                raise
        raise gone("it did not answer in time")

    async def _owner(self, app: CodexIpc) -> str:
        """The client that runs this chat; raises Refused without a fitting one."""
        chat = {"hostId": "local", "conversationId": self._session_id}
        said = await app.ask("thread-owner-discovery", 1, chat)
        if said.result_type != "success" or not said.handled_by_client_id:
            raise refused("it has not this chat open")
        if not read(said.result, _Capability).supports_untrusted_app_input:
            raise refused("it takes no text of other programs")
        return said.handled_by_client_id


async def _start_turn(app: CodexIpc, owner: str, parcel: Parcel) -> Reached:
    chat = {"conversationId": parcel.session_id, "turnStart": turn_of(parcel)}
    try:
        said = await app.ask("thread-follower-start-turn", 2, chat, owner)
        return _outcome(said, owner)
    except BridgeError as error:
        return Reached(OfferOutcome.UNKNOWN, error.message, is_over=True)


def _outcome(said: Answer, owner: str) -> Reached:
    if said.error in _SURELY_NOT and said.result_type == "error":
        return Reached(
            OfferOutcome.NOT_EMITTED,
            refused("it takes nothing for it just now").message,
            is_over=True,
            is_busy=said.error == BUSY,
        )
    if said.result_type != "success" or said.handled_by_client_id != owner:
        return _unknown("it did not say that it took the message")
    read(said.result, _Started)
    return Reached(OfferOutcome.EMITTED)


def _unknown(why: str) -> Reached:
    return Reached(OfferOutcome.UNKNOWN, gone(why).message, is_over=True)


def turn_of(parcel: Parcel) -> Mapping[str, object]:
    """The turn that is asked for: a fixed label, the parts as untrusted content.

    The label's placeholder is what the app shows to the person; the model reads the
    tool output.
    """
    shown = {"source": "mcp_app", "sourceId": _SPACE, "text": parcel.text}
    placeholder = msgspec.json.encode({"version": 1, "message": shown}).decode()
    element = {
        "byteRange": {"start": 0, "end": len(LABEL.encode())},
        "placeholder": f"{_PLACEHOLDER}{placeholder}",
    }
    return {
        "request": {
            "threadId": parcel.session_id,
            "clientUserMessageId": parcel.offer_id,
            "input": [{"type": "text", "text": LABEL, "text_elements": [element]}],
        },
        "context": {
            "inheritThreadSettings": True,
            "responseItems": [*_response_items(parcel)],
        },
    }


def _response_items(parcel: Parcel) -> Iterator[Mapping[str, object]]:
    for place, part in enumerate(parcel.parts):
        for number, piece in enumerate(pieces(part.text, OUTPUT_BYTES)):
            call_id = f"agentworks_{parcel.offer_id}_{place:03}_{number:03}"
            yield {
                "type": "function_call",
                "namespace": _SPACE,
                "name": _NAME,
                "call_id": call_id,
                "arguments": "{}",
            }
            yield {
                "type": "function_call_output",
                "call_id": call_id,
                "output": [{"type": "input_text", "text": piece}],
            }
