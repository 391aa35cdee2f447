"""Why a Codex chat is silent is guessed from its own files, which nobody writes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bridge.core import standing
from bridge.providers import codex_install
from bridge.providers.codex_trust import why_silent
from bridge.providers.project_file import apply
from bridge.providers.scope import Scope

TEMPLATES = Path(__file__).resolve().parents[2] / "packaging" / "plugins"


class Place:
    """A project and Codex's own folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.project = folder / "shop" / "web"
        self.project.mkdir(parents=True)
        (folder / ".codex").mkdir()

    def install(self) -> None:
        """Our hooks are written."""
        apply(codex_install.plan(self.project, self.folder / "state", TEMPLATES))

    def configure(self, text: str) -> None:
        """Codex says this."""
        (self.folder / ".codex" / "config.toml").write_text(text)

    def why(self, **environment: str) -> str:
        """What is guessed."""
        variables = {"HOME": str(self.folder), **environment}
        return why_silent(str(self.project), variables, self.folder / "state")


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def trusted(folder: Path, level: str = "trusted") -> str:
    return f'[projects."{folder}"]\ntrust_level = "{level}"\n'


def test_a_folder_that_is_not_trusted_runs_no_hooks(place: Place) -> None:
    place.install()
    assert place.why() == standing.FOLDER_NOT_TRUSTED

    parent = trusted(place.project.parent)
    place.configure(parent + trusted(place.project, "untrusted"))
    assert place.why() == standing.FOLDER_NOT_TRUSTED


def test_hooks_that_are_written_are_not_yet_trusted(place: Place) -> None:
    place.configure(trusted(place.project.parent))
    assert place.why() == standing.NOT_WRITTEN

    place.install()
    assert place.why() == standing.NOT_TRUSTED


def test_hooks_of_the_whole_account_need_no_trust_of_the_folder(place: Place) -> None:
    state = place.folder / "state"
    apply(codex_install.plan(place.folder, state, TEMPLATES, Scope.ACCOUNT))
    assert place.why() == standing.NOT_TRUSTED

    written = (place.folder / ".codex" / "config.toml").read_text()
    hook = f"{place.folder}/.codex/hooks.json:stop:0:0"
    place.configure(f'{written}[hooks.state."{hook}"]\ntrusted_hash = "sha256:00"\n')
    assert place.why() == standing.HOOKS_NOT_LOADED


def test_a_chat_older_than_its_trust_has_not_loaded_them(place: Place) -> None:
    place.install()
    hook = f"{place.project}/.codex/hooks.json:stop:0:0"
    state = f'[hooks.state."{hook}"]\ntrusted_hash = "sha256:00"\n'
    place.configure(trusted(place.project) + state)

    assert place.why() == standing.HOOKS_NOT_LOADED


@pytest.mark.parametrize("text", ["projects = 1", "[[", "\0", 'hooks = "x"'])
def test_a_configuration_that_says_nothing_trusts_nothing(
    place: Place, text: str
) -> None:
    place.configure(text)

    assert place.why() == standing.FOLDER_NOT_TRUSTED
    assert place.why(CODEX_HOME="relative") == standing.FOLDER_NOT_TRUSTED


def test_a_configuration_that_cannot_be_read_trusts_nothing(place: Place) -> None:
    config = place.folder / ".codex" / "config.toml"

    place.configure("a = " + "[" * 100_000)
    assert place.why() == standing.FOLDER_NOT_TRUSTED
    config.unlink()

    os.mkfifo(config)
    assert place.why() == standing.FOLDER_NOT_TRUSTED
    config.unlink()

    config.symlink_to("/dev/zero")
    assert place.why() == standing.FOLDER_NOT_TRUSTED
    assert place.why(CODEX_HOME="\0") == standing.FOLDER_NOT_TRUSTED
