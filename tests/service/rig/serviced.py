"""A scratch computer whose person has a systemd, and a terminal to type in."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from msgspec import Struct

from bridge.service.systemd import UNIT
from tests.journeys.rig.computer import Computer
from tests.journeys.rig.puppets import Puppet, puppet
from tests.service.rig.user_systemd import UserSystemd, user_systemd

TERMINAL = Path(__file__).with_name("terminal.py")


class Typed(Struct, frozen=True):
    """What one command line ended with and printed."""

    exit: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """The JSON document on its output."""
        return json.loads(self.out)


class Serviced:
    """See the module."""

    def __init__(
        self, computer: Computer, systemd: UserSystemd, terminal: Puppet
    ) -> None:
        self.computer = computer
        self.systemd = systemd
        self._terminal = terminal
        self.unit = Path(computer.environment["HOME"]) / ".config/systemd/user" / UNIT

    async def type(self, *words: str, **variables: str) -> Typed:
        """One command of the person."""
        done = await self._terminal.do("command", words=list(words), **variables)
        return Typed(**done)

    async def installed(self, settings: str = "") -> int:
        """The bridge as a service, with these settings beside ours; its pid."""
        done = await self.type("bridge", "install", "--yes", "--json")
        assert done.exit == 0, done.err
        if settings:
            await self.systemd.change(settings)
            done = await self.type("bridge", "restart", "--json")
        assert done.document["service"]["runs_it"], done.out
        return int(done.document["pid"])


@asynccontextmanager
async def serviced(computer: Computer) -> AsyncIterator[Serviced]:
    """The computer with a systemd; a bridge below it ends with it."""
    computer.install()
    async with (
        user_systemd(computer.environment) as systemd,
        puppet(systemd.environment, TERMINAL) as terminal,
    ):
        yield Serviced(computer, systemd, terminal)
