"""Finds the files that are shipped beside the code.

Promises the same answer from a checkout and from an installed wheel, where they
lie inside the package (pyproject.toml, force-include).
"""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).parent
_IN_CHECKOUT = {
    "hooks": "hooks",
    "systemd": "systemd",
    "launchd": "launchd",
    "plugins": "packaging/plugins",
}


def folder(name: str) -> Path:
    """The folder `hooks`, `systemd`, `launchd` or `plugins`.

    Raises FileNotFoundError for an installation that lacks it.
    """
    shipped = _PACKAGE / "assets" / name
    for place in (shipped, _PACKAGE.parent / _IN_CHECKOUT[name]):
        if place.is_dir():
            return place
    raise FileNotFoundError(f"{shipped} is missing from this installation")
