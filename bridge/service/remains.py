"""What a bridge leaves in its folders, and taking it away.

Promises that only places of ours are removed, never a whole folder that may hold
something else; that sockets, lock and logins go together; and that the journal
goes only by the person's own word. The caller holds the bridge's lock.
"""

from __future__ import annotations

import shutil
from contextlib import suppress
from pathlib import Path

from bridge.config import load_settings, save_settings
from bridge.errors import BridgeError
from bridge.paths import Paths, vet_folder


def remove_access(paths: Paths) -> tuple[str, ...]:
    """Take away sockets, lock and every login of ours; the places that are gone.

    The journal, the server's messages, logs and programs stay.
    """
    gone = [_without(place) for place in (paths.run, paths.leases)]
    gone += [_without(place) for place in (paths.parent_token, paths.refused)]
    return (*filter(None, gone), *_sign_out(paths))


def remove_all(paths: Paths) -> tuple[str, ...]:
    """As remove_access, and all else that the bridge made in the state folder."""
    journal = paths.journal
    files = [journal, *sorted(journal.parent.glob(f"{journal.name}[-.]*"))]
    folders = (paths.bin, paths.plugins, paths.log, paths.server)
    gone = list(remove_access(paths))
    for place in (*files, *folders, paths.state / "host_id"):
        gone += filter(None, [_without(place)])
    with suppress(OSError):  # it holds something that is not ours
        paths.state.rmdir()
    return tuple(gone)


def _without(place: Path) -> str:
    """Remove one place; its name, or nothing when nothing was there."""
    if place.is_dir() and not place.is_symlink():
        vet_folder(place)
        shutil.rmtree(place)
        return str(place)
    try:
        place.unlink()
    except FileNotFoundError:
        return ""
    return str(place)


def _sign_out(paths: Paths) -> tuple[str, ...]:
    """Forget the login in the settings; all else in them stays."""
    try:
        settings = load_settings(paths.config_file)
    except BridgeError:
        return ()  # not ours to change
    if settings.credentials is None:
        return ()
    save_settings(paths.config_file, type(settings)(settings.server))
    return (f"{paths.config_file} (the login in it)",)
