"""The message server of a machine: what it stores, and what it says when asked.

Behaves as the real one does (cursors, one lease per name, observations,
submissions that are remembered), and fails as the machine tells it to. Its
streams and answers pass through httpx's own transport interface.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

import httpx
import msgspec
import trio

from tests.fakes.clock import FakeClock
from tests.faults.whole.answers import Body, as_error, as_json

START = 500_000_000
LARGE = 12_000
_HEARTBEAT_S = 10.0
_BRIDGE = "/api/external/v1/bridge/attachments"


@dataclass
class Mail:
    """One message in bob's mailbox."""

    id: str
    sequence: int
    body: str
    delivery: str = "stored"
    observed: str = ""
    is_retracted: bool = False


@dataclass
class Taken:
    """One submission that the server has accepted."""

    submission_id: str
    place: str
    body: str
    answer: dict[str, Any]


@dataclass
class OpenStream:
    """One open event stream of one lease."""

    attachment_id: str
    chunks: trio.MemorySendChannel[bytes | Exception]
    cursor: int
    has_messages: bool
    is_silent: bool = False
    is_gone: bool = False
    sent: set[str] = field(default_factory=set)

    def say(self, event: str, body: object, id_: int | None = None) -> None:
        """One whole event."""
        place = f"id: {id_}\n" if id_ is not None else ""
        text = msgspec.json.encode(body).decode()
        self.put(f"{place}event: {event}\ndata: {text}\n\n".encode())

    def put(self, chunk: bytes | Exception) -> None:
        """These bytes; nothing once the other side is gone."""
        try:
            self.chunks.send_nowait(chunk)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            self.is_silent = self.is_gone = True


class MessageServer:
    """See the module. `on_receipt` and `on_lease_end` are told of what they say."""

    def __init__(self, clock: FakeClock) -> None:
        self.clock = clock
        self.mail: list[Mail] = []
        self.states: dict[str, str] = {}
        self.sessions: dict[str, str] = {}
        self.lease = ""
        self.progress = 0
        self.streams: list[OpenStream] = []
        self.faults: deque[str] = deque()
        self.send_faults: deque[str] = deque()
        self.rewinds = 0
        self.passed_over: set[str] = set()
        self.receipts: list[tuple[str, str]] = []
        self.taken: dict[str, Taken] = {}
        self.attempts: list[tuple[float, str, str, str]] = []
        self.on_receipt: Callable[[str, str], None] = lambda *_: None
        self.on_lease_end: Callable[[str], None] = lambda _: None
        self._opened = trio.Event()

    # ---- what the machine does ---------------------------------------------------

    def post(self, body: str) -> Mail:
        """Store a message; `pump` brings it to the stream."""
        number = len(self.mail) + 1
        mail = Mail(f"msg-{number}", START + number, body)
        self.mail.append(mail)
        return mail

    def pump(self) -> None:
        """Every stream gets what it has not had."""
        for stream in self.streams:
            if stream.is_silent or not stream.has_messages:
                continue
            for mail in self.mail:
                if mail.sequence > stream.cursor and self._is_wanted(mail):
                    self.bring(stream, mail)

    def bring(self, stream: OpenStream, mail: Mail, body: str | None = None) -> None:
        """One message to one stream, wherever that stream is."""
        if stream.is_silent:
            return
        if mail.sequence < stream.cursor and mail.id not in stream.sent:
            self.passed_over.add(mail.id)
        stream.sent.add(mail.id)
        stream.cursor = max(stream.cursor, mail.sequence)
        said = _shown(mail) | ({} if body is None else {"message": body})
        stream.say("message", said, mail.sequence)

    def retract(self, mail: Mail) -> None:
        """It is not stood by any more, unless it was acknowledged."""
        if mail.delivery != "stored":
            return
        mail.is_retracted = True
        for stream in self.streams:
            self._tell_retracted(stream, [mail])

    def cut(self, half: bool = False) -> None:
        """Every stream breaks."""
        for stream in self.streams:
            if half:
                stream.put(b'id: 500000099\nevent: message\ndata: {"message_id":"ms')
            stream.put(httpx.ReadError("cut"))
            stream.chunks.close()
        self.streams.clear()

    def replace(self, *, shows: bool) -> None:
        """The name is another computer's."""
        self._end_lease("replaced")
        if shows:
            for mail in self.mail:
                mail.observed = mail.observed or "elsewhere"
                self.progress = max(self.progress, mail.sequence)

    async def beat(self) -> None:
        """Until cancelled: the heartbeats of every stream that is not silent."""
        while True:
            self._opened = trio.Event()
            if not self.streams:
                await self._opened.wait()
            await trio.sleep(_HEARTBEAT_S)
            for stream in list(self.streams):
                if not stream.is_silent:
                    self._say_alive(stream)
                if stream.is_gone:
                    self.streams.remove(stream)

    def _end_lease(self, state: str) -> None:
        if not self.lease:
            return
        self.states[self.lease] = state
        self.on_lease_end(self.lease)
        for stream in [s for s in self.streams if s.attachment_id == self.lease]:
            stream.say("attachment", {"state": state})
            stream.chunks.close()
            self.streams.remove(stream)
        self.lease = ""

    # ---- what it answers ---------------------------------------------------------

    def answer(self, request: httpx.Request) -> httpx.Response:
        """The answer to one request, as if nothing failed."""
        path, method = request.url.path, request.method
        said = msgspec.json.decode(request.content) if request.content else {}
        if path == _BRIDGE:
            return as_json(self._attach(said))
        if not path.startswith(f"{_BRIDGE}/"):
            return as_error(404, "not_found")
        attachment_id, _, call = path.removeprefix(f"{_BRIDGE}/").partition("/")
        if method == "DELETE":
            if attachment_id == self.lease:
                self._end_lease("detached")
            return as_json({})
        state = self.states.get(attachment_id, "revoked")
        if state not in ("attached", "offline"):
            return as_error(410, "gone", state=state)
        return self._answer_lease(attachment_id, call, request, said)

    def _answer_lease(
        self, attachment_id: str, call: str, request: httpx.Request, said: Any
    ) -> httpx.Response:
        match call.partition("/")[0]:
            case "stream":
                return self._stream(attachment_id, request)
            case "offline":
                self.states[attachment_id] = "offline"
                return as_json({})
            case "progress":
                self.progress = max(self.progress, said["offered_through"])
                return as_json({"offered_through": self.progress})
            case "receipts":
                return as_json(self._take_receipts(said["receipts"]))
            case "release":
                return as_json(self._release(said["message_ids"]))
            case "read":
                return as_json(self._read(request.url.params))
            case "send":
                return self._send(said)
            case "sent":
                return self._sent(unquote(call.partition("/")[2]))
        return as_error(404, "not_found")

    def _attach(self, said: dict[str, Any]) -> dict[str, Any]:
        session = said["session_id"]
        child = None
        is_new = not self.lease or self.sessions[self.lease] != session
        if is_new:
            self._end_lease("replaced")
            self.lease = f"att-{len(self.states) + 1}"
            self.sessions[self.lease] = session
        if is_new or said.get("child_id") != self.lease:
            token = {"access_token": f"a-{self.lease}", "refresh_token": "r"}
            child = {**token, "expires_in": 10**9, "connection_id": self.lease}
        self.states[self.lease] = "attached"
        return {
            "attachment_id": self.lease,
            "agent_id": "agent-bob",
            "name": "bob",
            "state": "attached",
            "offered_through": self.progress,
            "child": child,
        }

    def _stream(self, attachment_id: str, request: httpx.Request) -> httpx.Response:
        cursor = int(request.headers.get("last-event-id", self.progress))
        if self.rewinds:
            self.rewinds -= 1
            cursor = 0
        chunks, received = trio.open_memory_channel[bytes | Exception](100_000)
        has_messages = request.url.params["messages"] == "on"
        stream = OpenStream(attachment_id, chunks, cursor, has_messages)
        self.states[attachment_id] = "attached"
        self.streams.append(stream)
        self._opened.set()
        self._tell_retracted(stream, self.mail)
        self.pump()
        self._say_alive(stream)
        kind = {"content-type": "text/event-stream"}
        return httpx.Response(200, headers=kind, stream=Body(received))

    def _tell_retracted(self, stream: OpenStream, mail: list[Mail]) -> None:
        told = [
            each.id
            for each in mail
            if each.is_retracted
            and each.sequence <= stream.cursor
            and each.delivery == "stored"
        ]
        if told and not stream.is_silent:
            said = {"message_ids": told, "reason": "name_unregistered"}
            stream.say("retract", said)

    def _say_alive(self, stream: OpenStream) -> None:
        stream.say("alive", {"through": stream.cursor})

    def _is_wanted(self, mail: Mail) -> bool:
        return mail.delivery == "stored" and not (mail.observed or mail.is_retracted)

    def _take_receipts(self, signs: list[dict[str, Any]]) -> dict[str, Any]:
        by_id = {each.id: each for each in self.mail}
        known = [each for each in signs if each["message_id"] in by_id]
        for each in known:
            message_id, delivery = each["message_id"], each["delivery"]
            mail = by_id[message_id]
            self.receipts.append((message_id, delivery))
            self.on_receipt(message_id, delivery)
            if delivery in ("offered", "unsure"):
                mail.observed = max(mail.observed, delivery)
            else:
                mail.delivery = max(mail.delivery, delivery, key=_rank)
        unknown = {each["message_id"] for each in signs} - set(by_id)
        recorded = [_recorded(by_id[each["message_id"]]) for each in known]
        return {"recorded": recorded, "unknown": sorted(unknown)}

    def _release(self, asked: list[str]) -> dict[str, Any]:
        back = {mail.id for mail in self.mail if mail.is_retracted}
        return {
            "released": [each for each in asked if each not in back],
            "withheld": [
                {"id": each, "reason": "retracted"} for each in asked if each in back
            ],
        }

    def _read(self, query: Mapping[str, str]) -> dict[str, Any]:
        after, limit = int(query["after"]), int(query["limit"])
        found = [
            mail
            for mail in self.mail
            if mail.sequence > after and not mail.is_retracted
        ][:limit]
        cursor = found[-1].sequence if found else after
        return {"messages": [_shown(mail) for mail in found], "next_cursor": cursor}

    # ---- submissions -------------------------------------------------------------

    def _send(self, said: dict[str, Any]) -> httpx.Response:
        submission_id, body = said["submission_id"], said["message"]
        place = str(said.get("target") or said.get("inbox_id"))
        known = self.taken.get(submission_id)
        if known is None:
            known = self._take(submission_id, place, body)
        if (known.place, known.body) != (place, body):
            return as_error(409, "submission_conflict")
        return as_json(known.answer)

    def _take(self, submission_id: str, place: str, body: str) -> Taken:
        number = len(self.taken) + 1
        answer = {
            "message_id": f"msg-out-{number}",
            "inbox_id": f"inbox-{place}",
            "conversation_id": f"inbox-{place}",
            "sequence": number,
        }
        self.taken[submission_id] = Taken(submission_id, place, body, answer)
        return self.taken[submission_id]

    def _sent(self, id_: str) -> httpx.Response:
        for each in self.taken.values():
            if id_ in (each.submission_id, each.answer["message_id"]):
                return as_json({**each.answer, "delivery": "stored"})
        return as_error(404, "not_found")


def _rank(delivery: str) -> int:
    return ("stored", "admitted", "processed").index(delivery)


def _recorded(mail: Mail) -> dict[str, str]:
    return {"message_id": mail.id, "delivery": mail.delivery, "observed": mail.observed}


def _shown(mail: Mail) -> dict[str, Any]:
    return {
        "message_id": mail.id,
        "sequence": mail.sequence,
        "inbox_id": "inbox-1",
        "conversation_id": "inbox-1",
        "sender": "alice",
        "message": mail.body,
        "sent_at": "2026-11-29T16:05:29Z",
    }
