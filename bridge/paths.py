"""Where everything of ours lies, and whether it is safe to use.

Owns the layout of the config folder and the state folder, and the only way
private files are read and written. Promises that a folder or file which another
user could have placed, read or replaced is refused with the command that mends
it, that refusing changes nothing on disk, and that what we make is private from
the moment it exists.
"""

from __future__ import annotations

import errno
import os
import shlex
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import platformdirs
from msgspec import Struct

from bridge.errors import EXIT_CONFIG, Refused, StorageFull, disk_trouble

PRODUCT = "agentworks"
STATE_VARIABLE = "AGENTWORKS_STATE"
CONFIG_VARIABLE = "AGENTWORKS_CONFIG"

_PRIVATE_FOLDER = 0o700
_PRIVATE_FILE = 0o600
_OTHERS = 0o077
_SAFELY = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_WRITE_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Paths(Struct, frozen=True):
    """The two folders of one person, and every place below them.

    `config_file` is `<config>/config.json` unless the person named another.
    """

    config: Path
    state: Path
    config_file: Path

    @property
    def run(self) -> Path:
        """Sockets and the lock."""
        return self.state / "run"

    @property
    def socket(self) -> Path:
        """The daemon's socket."""
        return self.run / "bridge.sock"

    @property
    def lock(self) -> Path:
        """The one-instance lock; never unlinked."""
        return self.run / "lock"

    @property
    def journal(self) -> Path:
        """The SQLite file of messages, submissions and attachments."""
        return self.state / "journal.sqlite3"

    @property
    def refused(self) -> Path:
        """Why the last start under a service manager was refused, if it was."""
        return self.state / "refused.json"

    @property
    def leases(self) -> Path:
        """One file of child tokens for each attachment."""
        return self.state / "leases"

    @property
    def bin(self) -> Path:
        """The installed hook client and MCP pipe."""
        return self.state / "bin"

    @property
    def plugins(self) -> Path:
        """Installed plugin packages."""
        return self.state / "plugins"

    @property
    def log(self) -> Path:
        """Log files."""
        return self.state / "log"

    @property
    def server(self) -> Path:
        """The embedded server's database and parent token."""
        return self.state / "server"

    @property
    def parent_token(self) -> Path:
        """The embedded server's one parent token."""
        return self.server / "parent.json"

    def prepare(self) -> None:
        """Make every folder of the state folder that is missing.

        All that exist are vetted before the first is made, so that a refusal
        leaves the disk as it was. Raises Refused (exit 78).
        """
        folders = (
            self.state,
            self.run,
            self.leases,
            self.bin,
            self.plugins,
            self.log,
            self.server,
        )
        for folder in folders:
            if os.path.lexists(folder):
                vet_folder(folder)
        for folder in folders:
            make_private_folder(folder)


def locate(config_file: str | None = None) -> Paths:
    """The paths of the person who runs this process; touches nothing on disk.

    `config_file` (else AGENTWORKS_CONFIG) names another settings file, and
    AGENTWORKS_STATE another state folder. Raises Refused (exit 78) when HOME or
    one of them is missing, relative or not UTF-8.
    """
    _absolute("HOME", os.environ.get("HOME", ""))
    config = Path(platformdirs.user_config_dir(PRODUCT, appauthor=False))
    state = Path(platformdirs.user_state_dir(PRODUCT, appauthor=False))
    if named := os.environ.get(STATE_VARIABLE, ""):
        state = _absolute(STATE_VARIABLE, named)
    named_file = config_file or os.environ.get(CONFIG_VARIABLE, "")
    if named_file:
        chosen = _absolute(
            CONFIG_VARIABLE if config_file is None else "--config", named_file
        )
        return Paths(config=chosen.parent, state=state, config_file=chosen)
    _absolute("XDG_CONFIG_HOME", str(config))
    _absolute("XDG_STATE_HOME", str(state))
    return Paths(config=config, state=state, config_file=config / "config.json")


def vet_folder(path: Path) -> None:
    """Raises Refused (exit 78) unless `path` is our own 0700 folder and no link."""
    os.close(open_private_folder(path))


def open_private_folder(path: Path) -> int:
    """A descriptor of our own 0700 folder, checked after opening it.

    The caller closes it. Raises Refused (exit 78), also when nothing is there.
    """
    try:
        folder = os.open(path, _FOLDER_FLAGS)
    except OSError as error:
        raise _not_a_folder(path, error) from error
    try:
        _vet_opened_folder(path, os.fstat(folder))
    except Refused:
        os.close(folder)
        raise
    return folder


def make_private_folder(path: Path) -> None:
    """Make `path` (and missing parents) with mode 0700, or vet what is there.

    Raises Refused (exit 78) for a folder that is not private or cannot be made,
    StorageFull when there is no room for it.
    """
    try:
        _make_parents(path)
        os.mkdir(path, _PRIVATE_FOLDER)
    except FileExistsError:
        pass
    except OSError as error:
        if isinstance(trouble := disk_trouble(path, error), StorageFull):
            raise trouble from error
        raise _refused(
            "folder_not_made",
            f"The folder {path} could not be made: {error.strerror}.",
            f"Make {path.parent} writable, or set {STATE_VARIABLE} to another folder.",
        ) from error
    vet_folder(path)


def read_private_file(path: Path, limit_bytes: int) -> bytes | None:
    """All of our own 0600 file, or None when there is no such file.

    A link, a FIFO, a folder, another owner, group bits and more than
    `limit_bytes` raise Refused (exit 78), which never quotes the content.
    """
    file = open_private_file(path, os.O_RDONLY)
    if file is None:
        return None
    with open(file, "rb") as opened:
        content = opened.read(limit_bytes + 1)
    if len(content) > limit_bytes:
        raise _refused(
            "file_too_big",
            f"{path} is larger than {limit_bytes} bytes, so it is not ours.",
            f"Move it away: mv {_quoted(path)} {_quoted(path)}.old",
        )
    return content


def open_private_file(path: Path, flags: int) -> int | None:
    """A descriptor of our own 0600 file, vetted after opening; None without one.

    The caller closes it. Raises Refused (exit 78) as read_private_file does.
    """
    try:
        # A FIFO without a writer would block for ever: open without waiting.
        file = os.open(path, flags | _SAFELY, _PRIVATE_FILE)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _unreadable(path, error) from error
    try:
        _vet_file(path, os.fstat(file))
    except Refused:
        os.close(file)
        raise
    return file


def write_private_file(path: Path, content: bytes) -> None:
    """Replace `path` by a 0600 file with `content`, whole or not at all.

    A link, another owner or group bits in the place raise Refused (exit 78) and
    stay as they are; a full or failing disk raises OSError, the old file stands.
    """
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        _vet_place(path, folder)
        _write_and_rename(path.name, folder, content)
    finally:
        os.close(folder)


def _write_and_rename(name: str, folder: int, content: bytes) -> None:
    fresh = f".{name}.{os.getpid()}.new"
    with _removed_on_failure(fresh, folder):
        file = os.open(fresh, _WRITE_FLAGS, _PRIVATE_FILE, dir_fd=folder)
        try:
            rest = memoryview(content)
            while rest:
                rest = rest[os.write(file, rest) :]
            # Crash: the content reaches the disk before the name does, and the
            # name before we say so (test_a_failed_write_leaves_the_old_file).
            os.fsync(file)
        finally:
            os.close(file)
        os.rename(fresh, name, src_dir_fd=folder, dst_dir_fd=folder)
    os.fsync(folder)


@contextmanager
def _removed_on_failure(name: str, folder: int) -> Iterator[None]:
    _unlink_if_there(name, folder)  # left by a process that died with our pid
    try:
        yield
    except BaseException:
        _unlink_if_there(name, folder)
        raise


def _unlink_if_there(name: str, folder: int) -> None:
    with suppress(FileNotFoundError):
        os.unlink(name, dir_fd=folder)


def _make_parents(path: Path) -> None:
    missing = []
    parent = path.parent
    while not os.path.lexists(parent):
        missing.append(parent)
        parent = parent.parent
    for folder in reversed(missing):
        os.mkdir(folder, _PRIVATE_FOLDER)


def _vet_place(path: Path, folder: int) -> None:
    try:
        present = os.stat(path.name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return
    _vet_file(path, present)


def _vet_file(path: Path, present: os.stat_result) -> None:
    if stat.S_ISLNK(present.st_mode):
        raise _link(path)
    if not stat.S_ISREG(present.st_mode):
        raise _refused(
            "file_unsafe",
            f"{path} is not a plain file.",
            f"Move it away: mv {_quoted(path)} {_quoted(path)}.old",
        )
    _vet_owner(path, present)
    if stat.S_IMODE(present.st_mode) & _OTHERS:
        raise _refused(
            "file_unsafe",
            f"{path} can be read or changed by other users.",
            f"Close it: chmod 600 {_quoted(path)}",
        )


def _vet_opened_folder(path: Path, present: os.stat_result) -> None:
    _vet_owner(path, present)
    if stat.S_IMODE(present.st_mode) & 0o777 != _PRIVATE_FOLDER:
        mode = stat.S_IMODE(present.st_mode)
        raise _refused(
            "folder_unsafe",
            f"The folder {path} has mode {mode:04o}, but it must be yours alone.",
            f"Close it: chmod 700 {_quoted(path)}",
        )


def _vet_owner(path: Path, present: os.stat_result) -> None:
    own_uid = os.geteuid()
    if present.st_uid != own_uid:
        raise _refused(
            "wrong_owner",
            f"{path} belongs to uid {present.st_uid}, and you are uid {own_uid}.",
            f"Move it away, or take it: sudo chown -R {own_uid} {_quoted(path)}",
        )


def _not_a_folder(path: Path, error: OSError) -> Refused:
    if path.is_symlink():
        return _link(path)
    if error.errno == errno.ENOENT:
        return _refused(
            "folder_missing",
            f"There is no folder {path}.",
            f"Start the bridge, which makes it: {PRODUCT} up",
        )
    if error.errno == errno.ENOTDIR:
        return _refused(
            "folder_unsafe",
            f"{path} is in the place of a folder.",
            f"Move it away: mv {_quoted(path)} {_quoted(path)}.old",
        )
    return _unreadable(path, error)


def _unreadable(path: Path, error: OSError) -> Refused:
    if error.errno == errno.ELOOP:
        return _link(path)
    return _refused(
        "not_readable",
        f"{path} cannot be opened: {error.strerror}.",
        f"Look at it: ls -ld {_quoted(path)}",
    )


def _link(path: Path) -> Refused:
    return _refused(
        "link_in_place",
        f"{path} is a symbolic link, which could lead anywhere.",
        f"Put the real thing there, or remove the link: rm {_quoted(path)}",
    )


def _absolute(variable: str, value: str) -> Path:
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise _refused(
            "path_unusable",
            f"{variable} is not UTF-8, so its files could not be named safely.",
            f"Set {variable} to a folder with a UTF-8 name.",
        ) from error
    if not value.startswith("/"):
        what = "is not set" if not value else "is not an absolute path"
        raise _refused(
            "path_unusable",
            f"{variable} {what}, so it is not known where your files are.",
            f"Set {variable} to an absolute path and try again.",
        )
    return Path(value)


def _quoted(path: Path) -> str:
    return shlex.quote(str(path))


def _refused(code: str, message: str, hint: str) -> Refused:
    return Refused(code, message, hint, exit_code=EXIT_CONFIG)
