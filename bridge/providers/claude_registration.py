"""The file in which a Claude Code process says which chat it has open.

Owns the reading of `<Claude's folder>/sessions/<pid>.json`. Promises that a file
that anyone else could have written, that is no plain file of a few kilobytes, or
that belongs to another process than the one asked about, is as good as none.
The file follows /clear, /resume and /branch; a killed process leaves it behind,
which is why its pid and start are compared. Versions before 2.1.332 write no
socket path.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Mapping
from pathlib import Path

import msgspec
from msgspec import Struct

from bridge.core.caller import ProcessFacts
from bridge.core.visible import one_line
from bridge.errors import Refused
from bridge.providers import host_json

# A registration is about one kilobyte.
LIMIT_BYTES = 64 * 1024
# What is spoken at a session's inbox; another number is another language.
PROTOCOLS = frozenset({1})
_TOKEN_LIMIT = 256
_WRITABLE_BY_OTHERS = 0o022
_FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Without O_NONBLOCK a FIFO in the file's place would block for ever.
_FILE_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class Registration(Struct, frozen=True):
    """What one live Claude Code process says of itself.

    `folder` is where the chat works; `socket_path` the session's inbox, empty
    where the version has none, and `protocol` what is spoken there; `status` idle,
    busy, waiting or empty.
    """

    session_id: str
    version: str
    folder: str = ""
    socket_path: str = ""
    protocol: int = 0
    name: str = ""
    status: str = ""


class Inbox(Struct, frozen=True):
    """Where this session takes text from outside; `token` goes with it, if any.

    `file` is the registration that says so.
    """

    file: str
    socket_path: str
    token: str = ""

    def __repr__(self) -> str:
        """Never the token."""
        return f"Inbox({self.file!r})"


class _Key(Struct, frozen=True, rename="camel"):
    peer_token: str
    proc_start: str

    def __repr__(self) -> str:
        """Never the token."""
        return f"_Key(proc_start={self.proc_start!r})"


class _File(Struct, frozen=True, rename="camel"):
    pid: int
    session_id: str
    proc_start: str
    version: str
    cwd: str = ""
    messaging_socket_path: str = ""
    peer_protocol: int = 0
    name: str = ""
    status: str = ""


def inbox_of(
    process: ProcessFacts, environment: Mapping[str, str] | None, session_id: str
) -> Inbox:
    """The inbox of exactly this session in exactly this process.

    Raises Refused, saying which: a process that has no registration we trust or has
    another chat open, a version without an inbox, a protocol that is not known.
    """
    registration = registration_of(process, environment)
    folder = _sessions_folder(environment)
    if registration is None or folder is None:
        raise _no_inbox("its process has no registration that can be trusted")
    if registration.session_id != session_id:
        raise _no_inbox("its process has another chat open now")
    version = f"Claude Code {one_line(registration.version, 32)}"
    if not registration.socket_path:
        raise _no_inbox(f"{version} has no inbox for messages")
    if registration.protocol not in PROTOCOLS:
        spoken = registration.protocol
        raise _no_inbox(f"{version} speaks a protocol that is not known ({spoken})")
    return Inbox(
        file=str(folder / f"{process.pid}.json"),
        socket_path=registration.socket_path,
        token=_token(folder, process, registration.socket_path),
    )


def _no_inbox(why: str) -> Refused:
    return Refused(
        "no_inbox", f"This chat cannot be woken: {why}.", "Messages come by its hooks."
    )


def _token(folder: Path, process: ProcessFacts, socket_path: str) -> str:
    """The key that lies beside the registration; empty where there is none."""
    mark = hashlib.sha256(os.fsencode(socket_path)).hexdigest()
    content = _read(folder, f"{process.pid}.{mark}.key")
    if content is None:
        return ""
    try:
        key = msgspec.json.decode(content, type=_Key)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ""
    is_its_own = key.proc_start == str(process.start)
    return key.peer_token if is_its_own and len(key.peer_token) <= _TOKEN_LIMIT else ""


def registration_of(
    process: ProcessFacts, environment: Mapping[str, str] | None
) -> Registration | None:
    """The registration of exactly this process, or None when anything is off.

    `environment` is the process's own, which says where its folder is; None when
    it could not be read.
    """
    folder = _sessions_folder(environment)
    if folder is None:
        return None
    content = _read(folder, f"{process.pid}.json")
    if content is None:
        return None
    try:
        said = msgspec.json.decode(content, type=_File)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return _checked(process, said)


def _checked(process: ProcessFacts, said: _File) -> Registration | None:
    if said.pid != process.pid or said.proc_start != str(process.start):
        return None
    if not host_json.is_session_id(said.session_id):
        return None
    if len(said.version) > host_json.WORD_LIMIT:
        return None
    if said.cwd and not host_json.is_folder(said.cwd):
        return None
    return Registration(
        session_id=said.session_id,
        version=said.version,
        folder=said.cwd,
        socket_path=said.messaging_socket_path,
        protocol=said.peer_protocol,
        name=said.name,
        status=said.status,
    )


def _sessions_folder(environment: Mapping[str, str] | None) -> Path | None:
    if environment is None:
        return None
    config = environment.get("CLAUDE_CONFIG_DIR", "")
    if not config:
        home = environment.get("HOME", "")
        config = f"{home}/.claude" if home else ""
    if not config.startswith("/") or "\0" in config:
        return None
    return Path(config) / "sessions"


def _read(folder: Path, name: str) -> bytes | None:
    try:
        opened = os.open(folder, _FOLDER_FLAGS)
    except OSError:
        return None
    try:
        if not _is_ours(os.fstat(opened)):
            return None
        file = os.open(name, _FILE_FLAGS, dir_fd=opened)
    except OSError:
        return None
    finally:
        os.close(opened)
    try:
        present = os.fstat(file)
        if not stat.S_ISREG(present.st_mode) or not _is_ours(present):
            return None
        content = os.read(file, LIMIT_BYTES + 1)
    except OSError:
        return None
    finally:
        os.close(file)
    return content if len(content) <= LIMIT_BYTES else None


def _is_ours(present: os.stat_result) -> bool:
    return present.st_uid == os.geteuid() and not present.st_mode & _WRITABLE_BY_OTHERS
