"""What the bridge says about itself: one JSON object on each line.

Owns the form of a line and what must never be in one. Promises that no message
body and no token is written, whatever is logged; that a line stays one line and
plain ASCII, so that no logged text drives a terminal or forges a second line;
and that a log which cannot be written is counted and never stops the bridge.
"""

from __future__ import annotations

import json
import logging
import os
import re
import threading
from collections.abc import Mapping, MutableMapping, Sequence
from pathlib import Path
from typing import Any, TextIO, TypeAlias

import structlog
from structlog.typing import FilteringBoundLogger

from bridge.clock import Clock, rfc3339
from bridge.paths import open_private_file, vet_folder

Log: TypeAlias = FilteringBoundLogger

HIDDEN = "[hidden]"
# A line is read by people; longer values are cut, not the line.
_VALUE_LIMIT = 2_000
# Deeper than anything we log; an object that contains itself ends here too.
_DEPTH_LIMIT = 6
# The log of some days; then one older file is kept.
_FILE_LIMIT_BYTES = 5 * 1024 * 1024

# Whole values that are never written, by their key or the last part of it.
_SECRET_KEY = re.compile(
    r"(^|_|-)(body|bodies|message|text|prompt|purpose|token|tokens|secret|password"
    r"|cookie|authorization)$",
    re.IGNORECASE,
)
_BEARER = re.compile(r"\b(bearer\s+|token\s*[:=]\s*)\S+", re.IGNORECASE)
# A long run of letters and digits is a credential or a digest; our own ids and
# UUIDs have hyphens after eight digits and are never taken for one.
_LONG_RUN = re.compile(r"[A-Za-z0-9_+~=-]{24,}")
_OWN_ID = re.compile(
    r"(?:[a-z]{2,8}-)?[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
)


class _Lines:
    """Writes whole lines to a text stream; counts those that were lost."""

    def __init__(self, stream: TextIO) -> None:
        self.lost = 0
        self._stream = stream
        self._turn = threading.Lock()

    def msg(self, line: str) -> None:
        """One line, at once."""
        try:
            with self._turn:
                self._stream.write(f"{line}\n")
                self._stream.flush()
        except (OSError, ValueError):  # full, gone or closed
            self.lost += 1

    debug = info = warning = error = critical = exception = log = msg


def open_log(stream: TextIO, clock: Clock, level: str = "info") -> Log:
    """A log that writes to this stream; `level` is debug, info, warning or error."""
    logger: Log = structlog.wrap_logger(
        _Lines(stream),
        processors=[
            structlog.processors.add_log_level,
            _with_time(clock),
            structlog.processors.format_exc_info,
            redact,
            _as_line,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
    ).bind()
    return logger


def open_log_file(path: Path) -> TextIO:
    """The log file, 0600 in its private folder, to append to.

    A file that has grown past 5 MiB becomes `<name>.1`. Raises Refused for a
    folder or a file that is not private or not ours, OSError for a failing disk.
    """
    vet_folder(path.parent)
    file = _open_to_append(path)
    if os.fstat(file).st_size > _FILE_LIMIT_BYTES:
        os.close(file)
        path.replace(path.with_name(f"{path.name}.1"))
        file = _open_to_append(path)
    return os.fdopen(file, "a", encoding="ascii")


def _open_to_append(path: Path) -> int:
    file = open_private_file(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    if file is None:  # O_CREAT makes it, unless its folder has just gone
        raise FileNotFoundError(path)
    return file


def forward_libraries(log: Log) -> None:
    """What libraries log from WARNING up goes to this log, without their words.

    Their words may quote a request, a header or a tool's arguments; the logger's
    name and the line of code say enough to find the cause.
    """
    for name in ("httpx", "httpcore"):
        logging.getLogger(name).setLevel(logging.WARNING)
    root = logging.getLogger()
    root.setLevel(logging.WARNING)
    root.addHandler(_Forward(log))


class _Forward(logging.Handler):
    def __init__(self, log: Log) -> None:
        super().__init__(logging.WARNING)
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        """Where it was said and how grave it is, and the kind of error."""
        error = record.exc_info[0] if record.exc_info else None
        self._log.warning(
            "library",
            library=record.name,
            gravity=record.levelname.lower(),
            where=f"{record.filename}:{record.lineno}",
            error=error.__name__ if error else "",
        )


# ---- redaction -------------------------------------------------------------------


def redact(
    logger: object, method: str, event: MutableMapping[str, Any]
) -> MutableMapping[str, Any]:
    """A structlog processor: the same line without bodies and tokens."""
    return {
        str(key): HIDDEN if _SECRET_KEY.search(str(key)) else safe_value(value)
        for key, value in event.items()
    }


def safe_value(value: object, depth: int = 0) -> object:
    """The value as plain JSON, its token-like parts hidden and long texts cut."""
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, str):
        return safe_text(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return f"[{len(value)} bytes]"
    if isinstance(value, BaseException):
        return safe_text(f"{type(value).__name__}: {value}")
    if depth >= _DEPTH_LIMIT:
        return "[deep]"
    if isinstance(value, Mapping):
        return {
            safe_text(str(key)): HIDDEN
            if _SECRET_KEY.search(str(key))
            else safe_value(each, depth + 1)
            for key, each in value.items()
        }
    if isinstance(value, Sequence | set | frozenset):
        return [safe_value(each, depth + 1) for each in value]
    return f"[{type(value).__name__}]"


def safe_text(text: str) -> str:
    """The text without token-like parts, cut to 2,000 characters."""
    cut = text if len(text) <= _VALUE_LIMIT else f"{text[:_VALUE_LIMIT]}..."
    return _LONG_RUN.sub(_hidden_run, _BEARER.sub(rf"\1{HIDDEN}", cut))


def _hidden_run(match: re.Match[str]) -> str:
    run = match.group()
    rest = _OWN_ID.sub("", run)
    has_both = any(map(str.isdigit, rest)) and any(map(str.isalpha, rest))
    return HIDDEN if len(rest) >= 24 and has_both else run


def _with_time(clock: Clock) -> structlog.typing.Processor:
    def add(
        logger: object, method: str, event: MutableMapping[str, Any]
    ) -> MutableMapping[str, Any]:
        return {"at": rfc3339(clock.wall()), **event}

    return add


def _as_line(logger: object, method: str, event: MutableMapping[str, Any]) -> str:
    # ASCII escapes: a terminal, a pager and `splitlines` see one line, whatever
    # was logged (test_a_logged_text_never_splits_its_line).
    return json.dumps(event, ensure_ascii=True, default=repr)
