"""The native way that a person named, as a URI, and their other wishes for mail.

Owns the three forms of such a URI and how wishes are kept with an attachment.
Promises that a URI which is not whole and plain is nobody's way: an absolute path
in one spelling, and nothing after it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct

from bridge.core.records import Want

# What a system takes in one call is far less; this bounds what is shown.
PATH_LIMIT = 512

ROUTES = {
    "claude+session": "claude_session",
    "unix": "codex_app_server",
    "desktop+unix": "codex_desktop",
}
"""The route of each scheme, as offers and attachments keep it."""

PROVIDERS = {"claude+session": "claude", "unix": "codex", "desktop+unix": "codex"}
"""The provider whose chats each scheme leads to."""

_MARK = "://"
_TMUX = "tmux"
_PANE_MARK = "#"
_PANE_LIMIT = 8


class Remote(Struct, frozen=True):
    """One named way: the `scheme`, and the absolute `path` of a socket or file."""

    scheme: str
    path: str

    @property
    def uri(self) -> str:
        """As the person wrote it."""
        return f"{self.scheme}{_MARK}{self.path}"

    @property
    def route(self) -> str:
        """The kind of way it is, as in a provider's ROUTES."""
        return ROUTES[self.scheme]

    @property
    def provider(self) -> str:
        """Whose chats it leads to."""
        return PROVIDERS[self.scheme]


def parsed(uri: str) -> Remote:
    """The way that a URI names; ValueError says in a few words what is wrong."""
    scheme, mark, path = uri.partition(_MARK)
    if not mark or scheme not in ROUTES:
        raise ValueError(f"it begins with none of {_named(ROUTES)}")
    if not path.startswith("/"):
        raise ValueError("its path is not absolute (three slashes, then the path)")
    if len(path) > PATH_LIMIT or not path.isprintable() or "%" in path:
        raise ValueError("its path is too long, or holds what no such path holds")
    if any(part in ("", ".", "..") for part in path[1:].split("/")):
        raise ValueError("its path is not in its plain form")
    return Remote(scheme, path)


def named(wants: Iterable[str]) -> Remote | None:
    """The way that the person named for this attachment, or None."""
    for want in wants:
        if _MARK in want and not want.startswith(_TMUX):
            return parsed(want)
    return None


class Pane(Struct, frozen=True):
    """A tmux pane: its server's socket, and tmux's own id of it (`%3`)."""

    socket: str
    pane: str


def pane_want(socket: str, pane: str) -> str:
    """A pane as wishes keep it; ValueError says what is wrong."""
    if not pane.startswith("%") or not pane[1:].isdecimal() or len(pane) > _PANE_LIMIT:
        raise ValueError("a pane is named by its id, such as %3")
    path = parsed(f"unix{_MARK}{socket}").path
    return f"{_TMUX}{_MARK}{path}{_PANE_MARK}{pane[1:]}"


def pane(wants: Iterable[str]) -> Pane | None:
    """The pane that the person named for this attachment, or None."""
    for want in wants:
        if want.startswith(_TMUX):
            socket, _, number = want.removeprefix(_TMUX + _MARK).rpartition(_PANE_MARK)
            return Pane(socket, f"%{number}")
    return None


def without_process(wants: Iterable[str]) -> tuple[str, ...]:
    """The wishes that hold on in another process: a session's file is one process's."""
    return tuple(want for want in wants if not want.startswith("claude+session:"))


def without_ways(wants: Iterable[str]) -> tuple[str, ...]:
    """The wishes that hold on in a chat of another provider: no way of this one."""
    return tuple(want for want in wants if _MARK not in want or want.startswith(_TMUX))


def wishes(
    former: Sequence[str], chosen: Sequence[str] | None, *uris: str
) -> tuple[str, ...]:
    """What an attachment keeps after an attach.

    `chosen` are the Want words of this attach: None keeps the former ones, an empty
    one is the wish for the usual, which ends named ways too. Each of `uris` names a
    way or a pane; an empty one keeps the former of its kind.
    """
    words = [want for want in former if _MARK not in want]
    kept = [want for want in former if _MARK in want]
    if chosen is not None:
        words = [want.value for want in Want if want.value in chosen]
        kept = kept if chosen else []
    new = [uri for uri in uris if uri]
    kinds = {uri.startswith(_TMUX) for uri in new}
    kept = [want for want in kept if want.startswith(_TMUX) not in kinds]
    return (*words, *sorted((*kept, *new)))


def _named(schemes: Iterable[str]) -> str:
    return ", ".join(f"{scheme}:///" for scheme in schemes)
