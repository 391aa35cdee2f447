"""Which message server the bridge uses when it hosts none, and its login there.

Promises that the login of one server is never shown to another one, and that a
login which a server run alone renews is read anew for each use.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

from bridge.config import Settings, load_parent_login
from bridge.errors import EXIT_CONFIG, Refused
from bridge.paths import Paths
from bridge.upstream.clients import ServerAddress, embedded, remote
from bridge.upstream.credentials import Credential, FixedToken, ReadToken

UNIX = "unix://"


def other_server(paths: Paths, settings: Settings) -> tuple[ServerAddress, Credential]:
    """Another server than our own: its address, and our login there.

    Raises Refused (exit 78) without a login.
    """
    if settings.server.startswith(UNIX):
        path = Path(settings.server.removeprefix(UNIX))
        return embedded(path), ReadToken(partial(_parent_token, paths))
    if settings.credentials is None:
        raise Refused(
            "not_signed_in",
            f"There is no login for {settings.server}, so the bridge cannot use it.",
            "Leave --server out to use the embedded server.",
            exit_code=EXIT_CONFIG,
        )
    return remote(settings.server), FixedToken(settings.credentials.access_token)


def _parent_token(paths: Paths) -> str:
    """The login that a server run alone in this state folder left for us."""
    login = load_parent_login(paths.parent_token)
    if login is None:
        raise Refused(
            "not_signed_in",
            f"{paths.parent_token} is missing, so the bridge has no login.",
            "Start the server first, with the same state folder.",
            exit_code=EXIT_CONFIG,
        )
    return login.token
