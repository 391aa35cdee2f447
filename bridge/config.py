"""The person's settings and credentials, as files.

Owns their shapes and their strict reading: a field that this version does not
know, a file that others could read and a server address that would leak a token
are refused with the fix. Promises that no error, log line or repr ever holds
what is in them.
"""

from __future__ import annotations

import ipaddress
import re
import shlex
from pathlib import Path
from typing import Literal, TypeVar
from urllib.parse import SplitResult, urlsplit

import msgspec
from msgspec import Struct

from bridge.errors import EXIT_CONFIG, Refused
from bridge.paths import read_private_file, write_private_file

EMBEDDED = "embedded"
"""The word for the server that the bridge itself hosts."""

_FILE_LIMIT = 64 * 1024  # bytes

# Where a field of ours is not right, in msgspec's words; never what it holds.
_PLACE = re.compile(r" - at `\$\.([a-z_.]+)`$")

Shape = TypeVar("Shape", "Settings", "ParentLogin")


class Credentials(Struct, frozen=True, forbid_unknown_fields=True):
    """The tokens of one connection; `expires_at` is wall seconds, 0 for unknown."""

    access_token: str
    refresh_token: str = ""
    expires_at: float = 0.0
    connection_id: str = ""

    def __repr__(self) -> str:
        """Never a token."""
        return f"Credentials(connection_id={self.connection_id!r})"


class ParentLogin(Struct, frozen=True, forbid_unknown_fields=True):
    """The login that a server run alone in this state folder left for its bridge."""

    account: str
    connection_id: str
    token: str

    def __repr__(self) -> str:
        """Never a token."""
        return f"ParentLogin(connection_id={self.connection_id!r})"


class Settings(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What the person chose; an empty `server` means the embedded one.

    `wake`: `never` keeps every message to the hooks, so that none starts a turn by
    itself; else a chat with a native way is reached at once. `notify`: `never` shows
    nothing on the desktop when mail waits for an idle chat that has none.
    """

    server: str = ""
    credentials: Credentials | None = None
    wake: Literal["native", "never"] = "native"
    notify: Literal["desktop", "never"] = "desktop"

    @property
    def is_embedded(self) -> bool:
        """True while the bridge hosts its own server."""
        return not self.server


def load_settings(file: Path, server: str = "") -> Settings:
    """The settings in `file`, or the defaults when there is no such file.

    `server` is the command line's choice and wins; tokens of another server are
    then not used. Raises Refused (exit 78).
    """
    settings = _load(file, Settings) or Settings()
    kept = _chosen(settings.server)
    if not server:
        return msgspec.structs.replace(settings, server=kept)
    chosen = _chosen(server)
    same = chosen == kept
    credentials = settings.credentials if same else None
    return msgspec.structs.replace(settings, server=chosen, credentials=credentials)


def _chosen(server: str) -> str:
    return "" if server in ("", EMBEDDED) else server_address(server)


def save_settings(file: Path, settings: Settings) -> None:
    """Replace the settings file; raises Refused, or OSError for a failing disk."""
    write_private_file(file, _encoded(settings))


def load_parent_login(file: Path) -> ParentLogin | None:
    """The login in `file`, or None without one; raises Refused (exit 78)."""
    return _load(file, ParentLogin)


def server_address(text: str) -> str:
    """A server's base address in one spelling; raises Refused (exit 78).

    https, or http on this computer only, since every call carries a token; or
    unix:///PATH for a server of ours that listens on a private socket.
    """
    if text.startswith("unix:///"):
        return text
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError as error:
        raise _bad_address("it is no address") from error
    if parts.scheme not in ("https", "http") or not parts.hostname:
        raise _bad_address("it is not https://HOST")
    if parts.username is not None or parts.query or parts.fragment:
        raise _bad_address("it holds more than a host and a path")
    if parts.scheme == "http" and not _is_loopback(parts.hostname):
        raise _bad_address("http would show your token to the network")
    return _spelled(parts, port)


def _spelled(parts: SplitResult, port: int | None) -> str:
    host = parts.hostname or ""
    host = f"[{host}]" if ":" in host else host
    number = "" if port is None else f":{port}"
    return f"{parts.scheme}://{host}{number}{parts.path.rstrip('/')}"


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _load(file: Path, shape: type[Shape]) -> Shape | None:
    content = read_private_file(file, _FILE_LIMIT)
    if content is None:
        return None
    try:
        return msgspec.json.decode(content, type=shape)
    except (msgspec.MsgspecError, RecursionError, UnicodeError) as error:
        place = shlex.quote(str(file))
        # Not "from error": its text may quote what is in the file.
        raise Refused(
            "bad_settings",
            f"{file} cannot be used: {_kind_of(error, shape)}.",
            f"Mend it, or move it away: mv {place} {place}.old",
            exit_code=EXIT_CONFIG,
        ) from None


def _kind_of(error: Exception, shape: type[Struct]) -> str:
    if isinstance(error, msgspec.ValidationError):
        where = _PLACE.search(str(error))
        place = f" ({where[1]})" if where else ""
        if "unknown field" not in str(error):
            return f"a field is missing or of the wrong kind{place}"
        known = place or f" (it knows {', '.join(shape.__struct_fields__)})"
        return f"it has a field that this version does not know{known}"
    return "it is not JSON"


def _encoded(content: Settings) -> bytes:
    return msgspec.json.format(msgspec.json.encode(content), indent=2) + b"\n"


def _bad_address(why: str) -> Refused:
    return Refused(
        "bad_server_address",
        f"The server's address cannot be used: {why}.",
        "Give it as https://HOST, http://localhost:PORT for this computer, "
        "unix:///PATH for a server of yours on a socket, or embedded for the bridge's "
        "own.",
        exit_code=EXIT_CONFIG,
    )
