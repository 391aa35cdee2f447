#!/usr/bin/python3 -IS
"""ask: carries one hook of a coding agent's program to the bridge and back.

    ask hook <provider> <event> [--else TEXT]
    ask --version

The twin of ask.c, for computers without a C compiler: what one does the other
does, and the comments there hold here. Installing puts a real interpreter into
the first line. Promises to import nothing but small parts of the standard
library, since a host waits for it at every turn.
"""

import _signal  # type: ignore[import-not-found]
import _socket
import errno
import posix
import select
import sys
import time

VERSION = b"ask AW1 python\n"
HEADER_LIMIT = 256  # bytes of one header line, its newline counted
STDIN_LIMIT = 8 << 20  # bytes
REPLY_LIMIT = 1 << 20  # bytes of all frames of one dialogue
WAIT_LIMIT_S = 600  # a longer wait is nonsense
SILENCE_S = 0.3  # of the bridge, before it asked for more
QUIET_MS = 100  # of the host, after a closing brace
STALL_MS = 2000  # of the host, anywhere else
CHUNK = 1 << 18
WORD = b"abcdefghijklmnopqrstuvwxyz0123456789_-ABCDEFGHIJKLMNOPQRSTUVWXYZ."
# How a kernel is asked who listens: SO_PEERCRED, or BSD's and macOS' LOCAL_PEERCRED.
# The uid is the second 32-bit word of both answers.
PEER = (_socket.SOL_SOCKET, getattr(_socket, "SO_PEERCRED", 0), 12)
PEER = PEER if PEER[1] else (0, 1, 76)

Answer = tuple[int, int, int, bytes]  # wait in s or -1, exit code, stream, text


def now_s() -> float:
    """Seconds on the clock that nobody sets."""
    return time.clock_gettime(time.CLOCK_MONOTONIC)


def raw(word: str) -> bytes:
    """An argument as it was given, byte for byte."""
    return word.encode(sys.getfilesystemencoding(), "surrogateescape")


def fill_standard_streams() -> None:
    """Put something that fails in the place of a closed 0, 1 or 2."""
    for number in (0, 1, 2):
        try:
            posix.fstat(number)
        except OSError:
            posix.open("/dev/null", posix.O_RDONLY if number else posix.O_WRONLY)


def enter_run_folder(called_as: str) -> bool:
    """Change into <state>/run, if it is a real folder of ours and nobody else's."""
    path = called_as
    for _ in range(40):
        folder = path[: path.rfind("/") + 1] or "./"
        try:
            target = posix.readlink(path)
        except OSError:
            break
        path = target if target.startswith("/") else folder + target
    flags = posix.O_RDONLY | posix.O_DIRECTORY | posix.O_NOFOLLOW
    opened = posix.open(folder + "../run", flags)
    facts = posix.fstat(opened)
    if facts.st_uid != posix.getuid() or facts.st_mode & 0o077:
        return False
    posix.fchdir(opened)
    return True


def connect_bridge() -> _socket.socket | None:
    """A connection to a daemon of the same uid; never waits."""
    bridge = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    bridge.setblocking(False)
    bridge.connect("bridge.sock")
    peer = bridge.getsockopt(*PEER)
    is_ours = int.from_bytes(peer[4:8], sys.byteorder) == posix.getuid()
    return bridge if is_ours else None


def ends_with_brace(body: bytearray) -> bool:
    """True when the last byte that is no space is a closing brace."""
    end = len(body)
    while end and body[end - 1] in b" \t\r\n":
        end -= 1
    return body[max(end - 1, 0) : end] == b"}"


def read_stdin() -> bytes | None:
    """Stdin to its end, at most 8 MiB; None when it stopped in the middle."""
    body = bytearray()
    if posix.isatty(0):
        return b""
    host = select.poll()
    host.register(0, select.POLLIN)
    while True:
        brace = ends_with_brace(body)
        if not host.poll(QUIET_MS if brace else STALL_MS):
            return bytes(body) if brace or not body else None
        try:
            chunk = posix.read(0, CHUNK)
        except BlockingIOError:
            continue
        except OSError as error:
            return b"" if error.errno == errno.EBADF and not body else None
        if not chunk:
            return bytes(body)
        body += chunk
        if len(body) > STDIN_LIMIT:
            return None


def read_number(word: bytes, limit: int) -> int:
    """A decimal number up to a limit; raises ValueError."""
    if not word.isdigit() or int(word) > limit:
        raise ValueError
    return int(word)


def read_header(line: bytes) -> tuple[int, int, int, int]:
    """Wait in s or -1, exit code, stream, length; raises ValueError, LookupError."""
    name, verb, *words = line.split(b" ")
    wait_s = read_number(words.pop(0), WAIT_LIMIT_S) if verb == b"wait" else -1
    exit_code, stream, length = words[:3]
    if name != b"AW1" or verb not in (b"wait", b"print"):
        raise ValueError
    return (
        wait_s,
        read_number(exit_code, 255),
        {b"stdout": 1, b"stderr": 2}[stream],
        read_number(length, REPLY_LIMIT),
    )


class Dialogue:
    """One request and what came back."""

    def __init__(self, constant: bytes) -> None:
        """`constant` is what to print when nothing better came."""
        self.bridge: _socket.socket | None = None
        self.unsent = memoryview(b"")
        self.asked = False
        self.reply = b""
        self.room = REPLY_LIMIT
        self.deadline_s = 0.0
        self.constant: Answer = (-1, 0, 1, constant)
        self.fallback = self.constant

    def take_frame(self) -> Answer | None:
        """The next whole frame, None if it needs more bytes; raises as read_header."""
        end = self.reply.find(b"\n", 0, HEADER_LIMIT)
        if end < 0:
            if len(self.reply) >= HEADER_LIMIT:
                raise ValueError
            return None
        wait_s, exit_code, stream, length = read_header(self.reply[:end])
        size = end + 1 + length
        if size > self.room:
            raise ValueError
        if len(self.reply) < size:
            return None
        text = self.reply[end + 1 : size]
        self.reply = self.reply[size:]
        self.room -= size
        return wait_s, exit_code, stream, text

    def next_print(self) -> Answer | None:
        """The print, if it is here; waits are obeyed on the way to it."""
        while (answer := self.take_frame()) and answer[0] >= 0:
            self.deadline_s = now_s() + answer[0]
            heeded = answer[3] or not self.constant[3]
            self.fallback = answer if heeded else self.constant
        return answer

    def send_some(self, bridge: _socket.socket) -> None:
        """Write what the socket takes. Errors show in what the daemon sends."""
        silent_until_s = now_s() + SILENCE_S
        try:
            count = bridge.send(self.unsent)
        except OSError:
            return
        self.unsent = self.unsent[count:]
        self.deadline_s = max(self.deadline_s, silent_until_s)

    def receive_some(self, bridge: _socket.socket) -> bool:
        """False when the daemon will send no more."""
        try:
            chunk = bridge.recv(CHUNK)
        except BlockingIOError:
            return True
        self.reply += chunk
        return bool(chunk)

    def converse(self, bridge: _socket.socket, request: bytes) -> Answer | None:
        """The daemon's print, if it came whole and in time."""
        self.bridge, self.unsent, self.asked = bridge, memoryview(request), True
        self.deadline_s = now_s() + SILENCE_S
        daemon = select.poll()
        while True:
            answer = self.next_print()
            left_s = self.deadline_s - now_s()
            if answer or left_s <= 0:
                return answer if left_s > 0 else None
            wanted = select.POLLIN | (select.POLLOUT if self.unsent else 0)
            daemon.register(bridge, wanted)
            for _, seen in daemon.poll(left_s * 1000):
                if seen & select.POLLOUT:
                    self.send_some(bridge)
                if seen & ~select.POLLOUT and not self.receive_some(bridge):
                    return None

    def tell_bridge(self, outcome: bytes) -> None:
        """Not before the request is whole: it would be taken for a part of it."""
        if self.bridge and self.asked and not self.unsent:
            try:
                self.bridge.send(outcome)
            except OSError:
                return

    def give_up(self) -> int:
        """Print nothing, or what stands for it; the exit code."""
        self.tell_bridge(b"AW1 unprinted 0\n")
        write_host(self.fallback[2], self.fallback[3])
        return self.fallback[1]

    def deliver(self, answer: Answer) -> int:
        """Print the answer and say so; partly written is neither outcome."""
        _, exit_code, stream, text = answer
        done = write_host(stream, text)
        if text and done in (0, len(text)):
            self.tell_bridge(b"AW1 printed 0\n" if done else b"AW1 unprinted 0\n")
        return exit_code if done == len(text) else 0


def write_host(stream: int, text: bytes) -> int:
    """How many bytes reached the host. A full pipe is waited for."""
    done = 0
    host = select.poll()
    host.register(stream, select.POLLOUT)
    while done < len(text):
        try:
            done += posix.write(stream, text[done:])
        except BlockingIOError:
            if not host.poll(STALL_MS):
                break
        except OSError:
            break
    return done


def ask(dialogue: Dialogue, words: list[str]) -> Answer | None:
    """What the bridge says, None if it says nothing that can be used."""
    provider, event = raw(words[2]), raw(words[3])
    if not provider or not event or (provider + event).strip(WORD):
        return None
    fill_standard_streams()
    bridge = connect_bridge() if enter_run_folder(words[0]) else None
    body = read_stdin() if bridge else None
    if bridge is None or body is None:
        return None
    header = b"AW1 hook %b %b %d\n" % (provider, event, len(body))
    if len(header) > HEADER_LIMIT:
        return None
    return dialogue.converse(bridge, header + body)


def main(words: list[str]) -> int:
    """The exit code."""
    if words[1:] == ["--version"]:
        return int(write_host(1, VERSION) != len(VERSION))
    _signal.signal(_signal.SIGINT, _signal.SIG_DFL)
    has_constant = len(words) == 6 and words[4] == "--else"
    is_hook = words[1:2] == ["hook"] and (len(words) == 4 or has_constant)
    dialogue = Dialogue(raw(words[5]) if is_hook and has_constant else b"")
    try:
        answer = ask(dialogue, words) if is_hook else None
    except (OSError, ValueError, LookupError, MemoryError):
        answer = None
    return dialogue.deliver(answer) if answer else dialogue.give_up()


if __name__ == "__main__":
    posix._exit(main(sys.argv))
