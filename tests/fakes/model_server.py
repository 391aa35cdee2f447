"""What our two fake model servers share: the script, the log and the HTTP shell.

Owns the steering of a fake model and the record of what reached it. Promises
that a request is in the log before it is answered, that a queued step is used
by exactly one request, and that nothing but loopback is listened on.

A reply is chosen, for requests of kind "turn" only, from the first that fits:
a queued step whose `when` occurs in the request's new text; directives in that
text (`FAKE_TOOL Name {json}`, `FAKE_SAY text`, `FAKE_DELAY seconds`,
`FAKE_ERROR status`, each to the end of its line); otherwise "ok N".
"""

from __future__ import annotations

import argparse
import re
import sys
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self

import msgspec
from msgspec import Struct

from bridge.clock import SystemClock

HOLD_LIMIT_S = 120.0
"""A reply held this long is given anyway, so that no client hangs for ever."""


class Step(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One reply: text, a tool call, both, or an HTTP error.

    `tool` is the name as the model sees it; `namespace` is Codex's and is found
    by itself when left empty. `hold` names a gate: the reply waits until
    `release(gate)`. `delay_s` is in seconds. `when` limits a queued step to
    requests whose new text or tool results contain it.
    """

    say: str = ""
    tool: str = ""
    arguments: dict[str, Any] = {}
    namespace: str = ""
    error: int = 0
    delay_s: float = 0.0
    hold: str = ""
    when: str = ""


class ModelRequest(Struct, frozen=True, kw_only=True):
    """One request as the model would see it.

    `kind` is "turn" (the agent itself, subagents included), "side" (titles and
    the like) or "other" (anything that is no model request). `new_text` is all
    text after the last assistant message, whatever its role: what was just
    delivered. `tool_results` are the outputs in the same stretch. `source` is
    the client's own word on where the turn came from, where it gives one.
    """

    number: int
    at_s: float
    kind: str
    path: str
    session_id: str = ""
    source: str = ""
    new_text: str = ""
    tool_results: tuple[str, ...] = ()
    tool_names: tuple[str, ...] = ()
    answer: Step | None = None
    body: dict[str, Any] = {}

    @property
    def arrived(self) -> str:
        """New text and tool results together."""
        return "\n".join((self.new_text, *self.tool_results))


Answer = Step | Callable[[ModelRequest], Step | None]

_DIRECTIVE = re.compile(r"FAKE_(TOOL|SAY|DELAY|ERROR) ([^\n]+)")


def directed_step(text: str) -> Step | None:
    """The step that directives in a text ask for, or None."""
    found = _DIRECTIVE.findall(text)
    step = Step()
    for word, rest in found:
        step = msgspec.structs.replace(step, **_directive_fields(word, rest))
    return step if found else None


def _directive_fields(word: str, rest: str) -> dict[str, Any]:
    if word == "SAY":
        return {"say": rest}
    if word == "DELAY":
        return {"delay_s": float(rest.split()[0])}
    if word == "ERROR":
        return {"error": int(rest.split()[0])}
    name, _, arguments = rest.partition(" ")
    # What follows the JSON on its line (a fence, a quote) is not part of it.
    arguments = arguments[: arguments.rfind("}") + 1] or "{}"
    return {"tool": name, "arguments": msgspec.json.decode(arguments)}


class Script:
    """The queued steps and the gates; safe to use from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._answers: list[Answer] = []
        self._gates: dict[str, threading.Event] = {}
        self._turns = 0

    def enqueue(self, *answers: Answer) -> None:
        """Add replies, used in order by the first requests that fit each.

        A callable is asked with each request and used up when it gives a step.
        """
        with self._lock:
            self._answers.extend(answers)

    def gate(self, name: str) -> threading.Event:
        """The gate of that name, closed until released."""
        with self._lock:
            return self._gates.setdefault(name, threading.Event())

    def release_all(self) -> None:
        """Open every gate that anyone has named."""
        with self._lock:
            for gate in self._gates.values():
                gate.set()

    def choose(self, request: ModelRequest) -> Step:
        """The reply to one request; uses up a queued step that fits."""
        if request.kind != "turn":
            return Step(say="side")
        with self._lock:
            self._turns += 1
            for place, answer in enumerate(self._answers):
                step = _fitting_step(answer, request)
                if step is not None:
                    del self._answers[place]
                    return step
        return directed_step(request.new_text) or Step(say=f"ok {self._turns}")


def _fitting_step(answer: Answer, request: ModelRequest) -> Step | None:
    if isinstance(answer, Step):
        return answer if answer.when in request.arrived else None
    return answer(request)


class ModelServer(ABC):
    """A fake model on 127.0.0.1, served by threads of its own.

    A dialect (Anthropic, OpenAI) says how to read a request and write a reply.
    Use it as a context manager, or call `close`.
    """

    def __init__(self, log: Path | None = None, port: int = 0) -> None:
        self.script = Script()
        self._log = log
        self._lock = threading.Lock()
        self._requests: list[ModelRequest] = []
        self.failures: list[BaseException] = []
        self._http = _LoopbackServer(self, port)
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.05,))
        self._thread.start()

    @abstractmethod
    def read(self, path: str, body: dict[str, Any]) -> ModelRequest:
        """A request's facts; number, time and answer are filled in later."""

    @abstractmethod
    def write(self, exchange: Exchange, request: ModelRequest, step: Step) -> None:
        """Answer one model request with one step."""

    @property
    def url(self) -> str:
        """`http://127.0.0.1:PORT`, no path."""
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    @property
    def requests(self) -> list[ModelRequest]:
        """Everything received so far, oldest first."""
        with self._lock:
            return list(self._requests)

    def turns(self, session_id: str = "", containing: str = "") -> list[ModelRequest]:
        """Requests of kind "turn", of one session and with a text if asked."""
        return [
            request
            for request in self.requests
            if request.kind == "turn"
            and request.session_id.startswith(session_id)
            and containing in request.arrived
        ]

    def enqueue(self, *answers: Answer) -> None:
        """See Script.enqueue."""
        self.script.enqueue(*answers)

    def release(self, gate: str) -> None:
        """Let replies held at this gate go, now and from now on."""
        self.script.gate(gate).set()

    def record(self, request: ModelRequest) -> ModelRequest:
        """Number, date, answer and log one request, in this order."""
        with self._lock:
            request = msgspec.structs.replace(
                request,
                number=len(self._requests) + 1,
                at_s=SystemClock().running(),
                answer=self.script.choose(request),
            )
            self._requests.append(request)
            self._append(request)
        return request

    def _append(self, request: ModelRequest) -> None:
        if self._log is not None:
            line = msgspec.json.encode(msgspec.structs.replace(request, body={}))
            with self._log.open("ab") as log:
                log.write(line + b"\n")

    def close(self) -> None:
        """Open every gate, stop listening; raises if the fake itself failed."""
        self.script.release_all()
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()
        if self.failures:
            raise RuntimeError("the fake model failed") from self.failures[0]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _LoopbackServer(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, model: ModelServer, port: int) -> None:
        self.model = model
        super().__init__(("127.0.0.1", port), Exchange)

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that goes away is a test's doing; anything else is a bug."""
        bug = sys.exception()
        if bug is not None and not isinstance(bug, ConnectionError):
            self.model.failures.append(bug)


class Exchange(BaseHTTPRequestHandler):
    """One request and its reply; the connection closes after it."""

    @property
    def _model(self) -> ModelServer:
        assert isinstance(self.server, _LoopbackServer)
        return self.server.model

    def log_message(self, *_: object) -> None:
        """The log is ModelServer's, not the terminal's."""

    def do_HEAD(self) -> None:
        """Health checks of clients; recorded as "other"."""
        self._not_a_model_request()

    def do_GET(self) -> None:
        """The log for other processes; anything else is recorded as "other"."""
        if self.path == "/fake/log":
            self.send_json(200, msgspec.to_builtins(self._model.requests))
            return
        self._not_a_model_request()

    def do_POST(self) -> None:
        """Steering from other processes, or a model request."""
        raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        if self.path.startswith("/fake/"):
            self._steer(raw)
            return
        body = msgspec.json.decode(raw or b"{}")
        model = self._model
        request = model.record(model.read(self.path, body))
        if request.kind == "other" or request.answer is None:
            self.send_json(404, {"error": {"type": "not_found_error"}})
            return
        self._hold(request.answer)
        model.write(self, request, request.answer)

    def _steer(self, raw: bytes) -> None:
        model = self._model
        if self.path == "/fake/enqueue":
            model.enqueue(*msgspec.json.decode(raw, type=list[Step]))
        elif self.path == "/fake/release":
            model.release(msgspec.json.decode(raw, type=dict[str, str])["gate"])
        self.send_json(200, {})

    def _hold(self, step: Step) -> None:
        if step.hold:
            self._model.script.gate(step.hold).wait(HOLD_LIMIT_S)
        if step.delay_s:
            threading.Event().wait(step.delay_s)

    def _not_a_model_request(self) -> None:
        model = self._model
        model.record(ModelRequest(number=0, at_s=0, kind="other", path=self.path))
        self.send_json(404, {"error": {"type": "not_found_error"}})

    def send_json(self, status: int, document: object) -> None:
        """One whole JSON reply."""
        encoded = msgspec.json.encode(document)
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(encoded)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(encoded)

    def start_stream(self) -> None:
        """The head of a reply of server-sent events."""
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("cache-control", "no-cache")
        self.end_headers()

    def send_event(self, kind: str, **fields: object) -> None:
        """One server-sent event whose JSON names its own type."""
        encoded = msgspec.json.encode({"type": kind, **fields})
        self.wfile.write(f"event: {kind}\ndata: ".encode() + encoded + b"\n\n")
        self.wfile.flush()


def serve_alone(dialect: type[ModelServer]) -> None:
    """Run one fake model until interrupted, its port written to a file."""
    parser = argparse.ArgumentParser(description=dialect.__doc__)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--port-file", type=Path, required=True)
    parser.add_argument("--log", type=Path)
    chosen = parser.parse_args()
    with dialect(log=chosen.log, port=chosen.port) as model:
        chosen.port_file.write_text(model.url.rpartition(":")[2])
        threading.Event().wait()
