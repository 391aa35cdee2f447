#!/usr/bin/python3 -IS
"""pipe: the MCP child of a coding agent's program, a pipe to the bridge and back.

    pipe mcp <provider> [channel]

Owns the lines between the host's stdin and stdout and <state>/run/bridge.sock,
found from this program's own place, and reads `method`, `id` and the handshake's
version of them; `channel`: the bridge may push. It survives a restart of the bridge:
the host's handshake is played again and every request answered once: a call whose
connection died with "outcome unknown", since the bridge may have done it; lists and
pings are asked again. With no bridge the handshake still succeeds, and every tool
says how to start it. It ends with its stdin, or with its parent.
"""

import _signal  # type: ignore[import-not-found]
import _socket
import posix
import select
import sys
import time

LINE_LIMIT, ANSWER_LIMIT = 1 << 20, 16 << 20  # bytes of a host's, a bridge's line
BUFFER_LIMIT = 1 << 20  # bytes; beyond it the side that brings them is not read
CHUNK = 1 << 16
PATIENCE_S = 5.0  # with a bridge that may come back, or that took a line and is silent
FIRST_DELAY_S, LAST_DELAY_S = 0.1, 1.0  # between tries to connect, doubling
PARENT_CHECK_S = 5.0
PEER = (_socket.SOL_SOCKET, getattr(_socket, "SO_PEERCRED", 0), 12)
PEER = PEER if PEER[1] else (0, 1, 76)  # macOS: LOCAL_PEERCRED
UID = posix.getuid()
FOLDER_FLAGS = posix.O_RDONLY | posix.O_DIRECTORY | posix.O_NOFOLLOW

NOT_RUNNING = (
    '{"type":"text","text":"The AgentWorks bridge is not running on this computer, so'
    ' nothing was sent or read. Ask the person to start it with: agentworks up"}'
)
HANDSHAKE = (
    '"result":{"protocolVersion":VERSION,"capabilities":{MORE"tools":{"listChanged":'
    'true}},"serverInfo":{"name":"agentworks","version":"0"}}'
)
CHANNEL = '"experimental":{"claude/channel":{}},'
OUTCOME_UNKNOWN = (
    "The AgentWorks bridge went away during this call, so its outcome is unknown: it"
    " may have happened. To send or reply, call again with the same submission_id,"
    " which never sends twice. Any other call can simply be made again."
)
LIST_CHANGED = b'{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}\n'

Message = dict[str, object]
Key = tuple[str, object]


class Grammar:
    """What the standard library's JSON scanner wants to be told."""

    strict = True
    object_hook = object_pairs_hook = array_hook = None
    parse_float = parse_constant = float
    parse_int = int


try:  # the scanner alone: the package around it costs every chat 1 MB of memory
    from _json import encode_basestring_ascii, make_scanner

    quote, scan = encode_basestring_ascii, make_scanner(Grammar)  # type: ignore[arg-type]
except (ImportError, AttributeError):
    import json

    quote, scan = json.dumps, json.JSONDecoder().raw_decode  # type: ignore[assignment]


def read(line: bytes) -> Message:
    """The message in one line; empty for a line that holds none."""
    try:
        text = str(line, "utf-8").strip(" \t\r\n")
        message, end = scan(text, 0)
    except (ValueError, StopIteration, RecursionError, SystemError):
        return {}  # SystemError: the scanner alone has no words for a bad string
    return message if isinstance(message, dict) and end == len(text) else {}


def key_of(message: Message) -> Key | None:
    """The id as a JSON value: 1 is 1.0 and not "1"; None when there is none."""
    value = message.get("id")
    if isinstance(value, str):
        return quote(value), value
    if isinstance(value, int | float) and not isinstance(value, bool):
        return "number", value
    return None


def version_in(part: object) -> str:
    """The protocol version in an initialize's params or result, or nothing."""
    version = part.get("protocolVersion") if isinstance(part, dict) else None
    return version if isinstance(version, str) else ""


def respond(key: Key | None, body: str) -> bytes:
    """One response's line: its id, and a result or error member as JSON."""
    answered = repr(key[1]) if key and key[0] == "number" else key[0] if key else "null"
    return f'{{"jsonrpc":"2.0","id":{answered},{body}}}\n'.encode()


def failure(code: int, text: str) -> str:
    """An error member."""
    return f'"error":{{"code":{code},"message":{quote(text)}}}'


def now_s() -> float:
    """Seconds on the clock that nobody sets."""
    return time.clock_gettime(time.CLOCK_MONOTONIC)


def own_folder(called_as: str) -> str:
    """The absolute folder of this program, links followed, with a slash."""
    path = called_as if called_as.startswith("/") else f"{posix.getcwd()}/{called_as}"
    try:
        while True:  # a path that was executed is no loop
            folder = path[: path.rfind("/") + 1]
            target = posix.readlink(path)
            path = target if target.startswith("/") else folder + target
    except OSError:
        return folder


def connect_bridge(folder: str) -> _socket.socket | None:
    """A connection to a daemon of our uid, None where there is none; never waits.

    As in ask.py: the run folder is a real one, ours and nobody else's.
    """
    bridge = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    bridge.setblocking(False)
    try:
        run = posix.open(folder + "../run", FOLDER_FLAGS)
        facts = posix.fstat(run)
        posix.fchdir(run)
        posix.close(run)
        if facts.st_uid == UID and not facts.st_mode & 0o077:
            bridge.connect("bridge.sock")
            peer = bridge.getsockopt(*PEER)
            if int.from_bytes(peer[4:8], sys.byteorder) == UID:
                return bridge
    except OSError:
        pass
    bridge.close()
    return None


def split(partial: bytes, chunk: bytes, limit: int) -> tuple[list[bytes | None], bytes]:
    """The whole lines, None for one over the limit in bytes; and the piece left."""
    *lines, left = (partial + chunk).split(b"\n")
    return [line if len(line) <= limit else None for line in lines], left[: limit + 1]


class Pipe:
    """One host, and the bridge while it is there; `folder` ends with a slash."""

    def __init__(self, folder: str, provider: str, more: list[str]) -> None:
        self.folder, self.is_channel = folder, bool(more)
        self.header = " ".join(["AW1 mcp", provider, "0", *more]).encode() + b"\n"
        self.parent = posix.getppid()
        self.from_host, self.to_host = b"", bytearray()
        self.from_bridge, self.to_bridge = b"", bytearray()
        self.bridge: _socket.socket | None = None
        self.held: list[tuple[float, bytes]] = []  # until when, line
        self.flying: dict[Key, tuple[object, bytes]] = {}  # method, line
        self.initialize = self.initialized = b""  # the host's handshake
        self.version = ""  # what the host was told in it
        self.is_greeting = False  # the handshake is out on this connection
        self.is_proven = False  # this connection was answered on
        self.proof_until_s = self.hope_until_s = self.next_try_s = self.delay_s = 0.0

    def connect(self) -> None:
        """Try once; a connection that is there stays."""
        if self.bridge:
            return
        self.bridge = connect_bridge(self.folder)
        self.from_bridge, self.to_bridge = b"", bytearray(self.header)
        self.is_greeting = self.is_proven = False
        self.proof_until_s = 0.0
        if self.bridge and self.initialize:
            self.greet()
        elif self.bridge:
            self.pass_held()

    def greet(self) -> None:
        """Send the handshake: nothing else passes until it is answered."""
        self.is_greeting = True
        self.write_bridge(self.initialize)

    def write_bridge(self, line: bytes) -> None:
        """Queue one line. A dying listener still accepts: the first wants proof."""
        if not self.is_proven and not self.proof_until_s:
            self.proof_until_s = now_s() + PATIENCE_S
        self.to_bridge += line + b"\n"

    def lose(self) -> None:
        """The connection died: answer what may have happened, keep what may not."""
        if self.bridge:
            self.bridge.close()
        self.bridge = None
        until_s = now_s() + PATIENCE_S
        if self.is_proven:
            self.hope_until_s = until_s
        if now_s() > self.proof_until_s:  # else a bridge that flaps would be hammered
            self.delay_s = 0.0
        lost, self.flying = self.flying, {}
        is_waiting = any(line is self.initialize for _, line in self.held)
        again = [] if self.version or is_waiting else [self.initialize]
        for key, (method, line) in lost.items():
            if method in ("tools/list", "ping"):
                again.append(line)
            elif method == "server/discover":
                self.answer_locally(line)
            else:
                self.to_host += respond(key, failure(-32000, OUTCOME_UNKNOWN))
        self.held = [(until_s, line) for line in again if line] + self.held

    def hear_host(self, line: bytes) -> None:
        """Pass a line on, keep it for a while, or leave it to be answered here."""
        message = read(line)
        method = message.get("method")
        if method == "initialize":
            self.initialize, self.initialized, self.version = line, b"", ""
            if self.bridge:
                self.greet()
        elif method == "notifications/initialized":
            self.initialized = line
        self.connect()
        if self.bridge and not self.is_greeting:
            self.pass_on(line, message)
        elif method != "notifications/initialized":
            is_hopeful = self.bridge or now_s() < self.hope_until_s
            self.held.append((now_s() + PATIENCE_S if is_hopeful else 0.0, line))

    def pass_on(self, line: bytes, message: Message) -> None:
        """Send one line to the bridge and remember what it asks."""
        key, method = key_of(message), message.get("method")
        if key and method:
            self.flying[key] = method, b"" if method == "tools/call" else line
        self.write_bridge(line)

    def answer_locally(self, line: bytes) -> None:
        """What the bridge would say if it could only say that it is not there."""
        message = read(line)
        key, method = key_of(message), message.get("method")
        if method == "initialize":
            self.version = version_in(message.get("params")) or "2025-06-18"
            body = HANDSHAKE.replace("MORE", CHANNEL if self.is_channel else "")
            body = body.replace("VERSION", quote(self.version))
        elif method == "tools/list":
            body = f'"result":{self.installed_tools()}'
        elif method == "tools/call":
            body = f'"result":{{"content":[{NOT_RUNNING}],"isError":true}}'
        else:
            is_ping = method == "ping"
            body = '"result":{}' if is_ping else failure(-32601, "Method not found")
        if key and method:
            self.to_host += respond(key, body)

    def installed_tools(self) -> str:
        """The list as it was installed beside this program, or an empty one."""
        try:
            opened = posix.open(self.folder + "tools.json", posix.O_RDONLY)
            text = posix.read(opened, LINE_LIMIT).replace(b"\n", b" ")
            posix.close(opened)
        except OSError:
            text = b""
        return str(text, "utf-8") if read(text) else '{"tools":[]}'

    def hear_bridge(self, line: bytes) -> None:
        """Pass a line to the host, but the answer to a handshake played again."""
        message = read(line)
        key, is_answer = key_of(message), "method" not in message
        if self.is_greeting and is_answer and key == key_of(read(self.initialize)):
            self.end_greeting(line, version_in(message.get("result")))
        elif message:
            self.is_proven = self.is_proven or not self.is_greeting
            if is_answer and key:
                self.flying.pop(key, None)
            self.to_host += line + b"\n"

    def end_greeting(self, line: bytes, version: str) -> None:
        """The handshake was answered: everything that waited passes."""
        if not self.version:
            self.held = [held for held in self.held if held[1] is not self.initialize]
            self.to_host += line + b"\n"
            self.initialize = self.initialize if version else b""
        elif not version:
            return self.lose()
        elif version != self.version:
            raise SystemExit("pipe: the bridge now speaks another protocol version")
        elif self.initialized:
            self.to_host += LIST_CHANGED
        self.version = version
        self.is_greeting, self.is_proven = False, True
        if self.initialized:
            self.write_bridge(self.initialized)
        self.pass_held()

    def pass_held(self) -> None:
        """Send what waited, in its order."""
        held, self.held = self.held, []
        for _, line in held:
            self.pass_on(line, read(line))

    def keep_time(self) -> None:
        """Do what is due now."""
        now = now_s()
        if posix.getppid() != self.parent:
            raise SystemExit(0)
        if self.bridge and not self.is_proven and 0 < self.proof_until_s <= now:
            self.lose()
        elif not self.bridge and now >= self.next_try_s:
            # Many children lose the bridge at once: their pids spread them.
            self.delay_s = min(max(self.delay_s * 2, FIRST_DELAY_S), LAST_DELAY_S)
            self.next_try_s = now + self.delay_s * (0.5 + posix.getpid() % 64 / 64)
            self.connect()
        for _, line in [held for held in self.held if now >= held[0]]:
            self.answer_locally(line)
        self.held = [held for held in self.held if now < held[0]]

    def wait(self) -> dict[int, int]:
        """What poll says of the host's two ends and of the bridge's socket."""
        due = [now_s() + PARENT_CHECK_S, *(until_s for until_s, _ in self.held)]
        if not self.bridge:
            due.append(self.next_try_s)
        elif self.proof_until_s and not self.is_proven:
            due.append(self.proof_until_s)
        wait_ms = max(0.0, min(due) - now_s()) * 1000
        is_full = len(self.to_host) > BUFFER_LIMIT
        waiting = len(self.to_bridge) + sum(len(line) for _, line in self.held)
        poll = select.poll()
        poll.register(0, 0 if is_full or waiting > BUFFER_LIMIT else select.POLLIN)
        poll.register(1, select.POLLOUT if self.to_host else 0)
        if self.bridge:
            wanted = select.POLLOUT if self.to_bridge else 0
            poll.register(self.bridge, wanted | (0 if is_full else select.POLLIN))
        return dict(poll.poll(wait_ms + 1))

    def serve_bridge(self, bridge: _socket.socket, seen: int) -> None:
        """Receive and send what the socket has and takes."""
        chunk: bytes | None = None
        try:
            if seen & ~select.POLLOUT:
                chunk = bridge.recv(CHUNK)
            else:
                del self.to_bridge[: bridge.send(self.to_bridge)]
        except BlockingIOError:
            return
        except OSError:  # when sending, what came before its end is still to be read
            chunk = b"" if seen & ~select.POLLOUT else None
        lines, self.from_bridge = split(self.from_bridge, chunk or b"", ANSWER_LIMIT)
        for line in lines:
            if self.bridge is bridge and line:
                self.hear_bridge(line)
        if self.bridge is bridge and (chunk == b"" or None in lines):
            self.lose()

    def serve_host(self, seen_in: int, seen_out: int) -> None:
        """Read and write what the host has and takes; raises SystemExit without one."""
        chunk = posix.read(0, CHUNK) if seen_in else None
        lines, self.from_host = split(self.from_host, chunk or b"", LINE_LIMIT)
        for line in lines:
            if line is None:
                self.to_host += respond(None, failure(-32600, "Over 1 MiB in one line"))
            elif line.strip():
                self.hear_host(line)
        if seen_out & select.POLLOUT:  # a pipe takes this much without blocking
            del self.to_host[: posix.write(1, self.to_host[: select.PIPE_BUF])]
        if chunk == b"" or (seen_out and not seen_out & select.POLLOUT):
            raise SystemExit(0)

    def turn(self) -> None:
        """One round; the bridge first, so that its end is known before more is sent."""
        seen = self.wait()
        if self.bridge and (at_bridge := seen.get(self.bridge.fileno(), 0)):
            self.serve_bridge(self.bridge, at_bridge)
        self.serve_host(seen.get(0, 0), seen.get(1, 0))
        self.keep_time()


def main(words: list[str]) -> None:
    """Run until the host is gone; raises SystemExit."""
    _signal.signal(_signal.SIGINT, _signal.SIG_DFL)
    is_usual = len(words) > 2 and words[1] == "mcp" and words[2].isidentifier()
    if not is_usual or words[3:] not in ([], ["channel"]):
        raise SystemExit("usage: pipe mcp <provider> [channel]")
    pipe = Pipe(own_folder(words[0]), words[2], words[3:])
    while True:
        try:
            pipe.turn()
        except BlockingIOError:
            continue
        except OSError:  # the host closed its end
            raise SystemExit(0) from None


if __name__ == "__main__":
    main(sys.argv)
