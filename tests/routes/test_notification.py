"""A notification holds a name and nothing else, and harms nothing when it fails."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio

from bridge.routes.notification import DEADLINE_S, Desktop

CANARY = "cnry-of-the-environment"
ENVIRONMENT = {
    "DBUS_SESSION_BUS_ADDRESS": "unix:path=/run/user/1/bus",
    "HOME": "/home/ada",
    "ANTHROPIC_API_KEY": CANARY,
    "LD_PRELOAD": CANARY,
    "PATH": f"/{CANARY}",
}
ON_MAC = ["-title", "AgentWorks", "-message", "Messages wait for bob"]
LINK = "codex://threads/0199"


class Place:
    """A folder of programs that keep what they were started with."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.said = folder / "said"

    def put(self, name: str, then: str = "exit 0") -> None:
        """A program that writes its arguments and environment down."""
        program = self.folder / name
        arguments = 'for word in "$@"; do printf "%s\\n" "$word"; done'
        kept = f"{{ {arguments}; echo ---; /usr/bin/env; }} > '{self.said}'"
        program.write_text(f"#!/bin/sh\n{kept}\n{then}\n")
        program.chmod(0o700)

    def desktop(self, platform: str = "linux") -> Desktop:
        """Shows by these programs alone."""
        return Desktop(ENVIRONMENT, (str(self.folder),), platform)

    @property
    def words(self) -> list[str]:
        """What the program was given."""
        return self.said.read_text().partition("---\n")[0].splitlines()

    @property
    def variables(self) -> str:
        """The environment that it ran with."""
        return self.said.read_text().partition("---\n")[2]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.mark.parametrize(
    ("platform", "program", "link", "words"),
    [
        (
            "linux",
            "notify-send",
            LINK,
            ["--app-name=AgentWorks", "--", "AgentWorks", "Messages wait for bob"],
        ),
        (
            "darwin",
            "terminal-notifier",
            LINK,
            [*ON_MAC, "-open", LINK],
        ),
        (
            "darwin",
            "terminal-notifier",
            "",
            ON_MAC,
        ),
    ],
)
async def test_each_program_is_given_the_name_as_one_argument(
    place: Place, platform: str, program: str, link: str, words: list[str]
) -> None:
    place.put(program)

    assert await place.desktop(platform).show("bob", link) == ""

    assert place.words == words


async def test_without_the_usual_program_another_one_shows_it(place: Place) -> None:
    place.put("gdbus")
    assert await place.desktop().show("bob") == ""
    assert "org.freedesktop.Notifications.Notify" in place.words
    assert place.words[-4] == "Messages wait for bob"
    options = [word for word in place.words if word.startswith("-")]
    assert options == ["--session", "--dest", "--object-path", "--method"]

    place.put("osascript")
    assert await place.desktop("darwin").show("bob") == ""
    assert place.words[-2:] == ["--", "Messages wait for bob"]
    assert not [word for word in place.words[:-1] if "bob" in word]


async def test_the_program_gets_what_finds_the_desktop_and_no_more(
    place: Place,
) -> None:
    place.put("notify-send")

    await place.desktop().show("bob")

    assert "DBUS_SESSION_BUS_ADDRESS=unix:path=/run/user/1/bus" in place.variables
    assert CANARY not in place.variables


async def test_a_desktop_that_shows_nothing_says_why(place: Place) -> None:
    assert "no program" in await place.desktop().show("bob")

    place.put("notify-send", "exit 1")
    assert await place.desktop().show("bob") == "notify-send could not show it"

    (place.folder / "notify-send").write_bytes(b"\x7fELF")
    assert await place.desktop().show("bob")


async def test_a_program_that_hangs_is_ended(place: Place) -> None:
    place.put("notify-send", "exec /bin/sleep 1000")
    begun = trio.current_time()

    assert await place.desktop().show("bob") == "it took too long"

    assert trio.current_time() - begun < DEADLINE_S + 2
