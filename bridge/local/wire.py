"""The AW1 framing of the local socket: a header line, then a body.

Owns the grammar and nothing else: no socket, no clock. Promises that any bytes
become either a header or Invalid, that no more than HEADER_LIMIT bytes are kept
while a header is incomplete, and that no word after the length is ever needed, so
that a later version can add some. The first released bytes are for ever.
"""

from __future__ import annotations

import re

from msgspec import Struct

from bridge.core.render import Print
from bridge.errors import Invalid

MAGIC = "AW1"
HEADER_LIMIT = 256  # bytes, the newline included

# How many words stand between each verb and its body's length.
WORD_COUNTS = {
    "hook": 2,  # provider, event
    "call": 0,
    "mcp": 1,  # provider
    "route": 2,  # provider, session id
    "wait": 3,  # seconds, exit code, stream
    "print": 2,  # exit code, stream
    "printed": 0,
    "unprinted": 0,
    "reply": 0,
}
_WORD = re.compile(r"[\x21-\x7e]+")
_LENGTH = re.compile(r"[0-9]{1,10}")
_STREAMS = ("stdout", "stderr")


class Header(Struct, frozen=True):
    """One header line; `length` is the body's length in bytes.

    `more` are the words after it: `channel` of an MCP child whose host was asked to
    take messages by itself. Who does not know a word leaves it.
    """

    verb: str
    words: tuple[str, ...] = ()
    length: int = 0
    more: tuple[str, ...] = ()


def parse_header(line: bytes) -> Header:
    """The header in `line`, which has no newline any more; raises Invalid."""
    try:
        magic, verb, *rest = line.decode("ascii").split(" ")
    except ValueError as error:
        raise _garbage("its first line is no AW1 header") from error
    if magic != MAGIC:
        raise _garbage("it does not speak AW1")
    count = WORD_COUNTS.get(verb)
    if count is None:
        raise Invalid("unknown_verb", "The bridge does not know this kind of request.")
    if len(rest) <= count or not _LENGTH.fullmatch(rest[count]):
        raise _garbage("its header has no length in the right place")
    words = tuple(rest[:count])
    if not all(map(_WORD.fullmatch, words)):
        raise _garbage("a word of its header is empty or not printable")
    more = tuple(word for word in rest[count + 1 :] if _WORD.fullmatch(word))
    return Header(verb, words, int(rest[count]), more)


def format_frame(verb: str, words: tuple[str, ...] = (), body: bytes = b"") -> bytes:
    """The bytes of one frame; a header that could not be read back is Invalid."""
    line = " ".join((MAGIC, verb, *words, str(len(body)))).encode("ascii", "replace")
    if len(line) >= HEADER_LIMIT or parse_header(line) != Header(
        verb, words, len(body)
    ):
        raise _garbage("its header cannot be written")
    return line + b"\n" + body


def format_print(answer: Print) -> bytes:
    """The frame that a hook client prints."""
    return format_frame("print", _print_words(answer), answer.text)


def format_wait(seconds: int, fallback: Print) -> bytes:
    """The frame that gives a hook client `seconds` more.

    `fallback` is what it prints if nothing better comes by then.
    """
    words = (str(seconds), *_print_words(fallback))
    return format_frame("wait", words, fallback.text)


def _print_words(answer: Print) -> tuple[str, str]:
    if answer.stream not in _STREAMS:
        raise _garbage(f"{answer.stream} is no stream to print to")
    return str(answer.exit), answer.stream


class Incoming:
    """Bytes as they arrive from one peer, and the frames among them."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, chunk: bytes) -> None:
        """Add bytes that were received."""
        self._buffer += chunk

    def take_header(self) -> Header | None:
        """The next header, or None while it is incomplete; raises Invalid."""
        end = self._buffer.find(b"\n", 0, HEADER_LIMIT)
        if end < 0:
            if len(self._buffer) >= HEADER_LIMIT:
                raise _garbage(f"its header is longer than {HEADER_LIMIT} bytes")
            return None
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 1]
        return parse_header(line)

    def take_body(self, length: int) -> bytes | None:
        """The next `length` bytes, or None while they are incomplete."""
        if len(self._buffer) < length:
            return None
        body = bytes(self._buffer[:length])
        del self._buffer[:length]
        return body

    def take_rest(self) -> bytes:
        """Everything that has arrived and was not taken."""
        rest = bytes(self._buffer)
        self._buffer.clear()
        return rest

    def __len__(self) -> int:
        """How many bytes wait."""
        return len(self._buffer)


def _garbage(what: str) -> Invalid:
    return Invalid(
        "bad_frame",
        f"A local program sent something that is no request: {what}.",
        "Use the agentworks command or the installed hook client.",
    )
