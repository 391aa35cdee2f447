"""The plugin packages of hosts whose set-up in a project does not need one.

Owns what of them lies in our own state folder: a whole package, its paths filled
in, which its person may give to the host's own plugin command to have us in every
project (packaging/manual/organisations.md). Promises that nothing names it there.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from bridge.providers import templates
from bridge.providers.project_file import PackageFile

WHOLE = frozenset({"cursor", "muse", "pi"})
"""Claude Code's and Codex's installers bring their own."""


def of(provider: str, state_dir: Path, templates_dir: Path) -> Iterator[PackageFile]:
    """The package of this provider; nothing for one that has none."""
    if provider not in WHOLE:
        return
    target, words = state_dir / "plugins" / provider, templates.places(state_dir)
    for name, content in templates.filled_package(templates_dir / provider, words):
        yield PackageFile(target / name, content)
