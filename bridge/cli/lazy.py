"""A group of commands that are imported only when they are used."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module

import click

from bridge.cli.invocation import global_options


class LazyGroup(click.Group):
    """Knows where each command is: `module:name` by the word that is typed.

    `aliases` are other words for some of them, which help does not list.
    """

    def __init__(
        self,
        name: str,
        places: Mapping[str, str],
        summary: str,
        aliases: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(name, help=summary, params=global_options())
        self._places = places
        self._aliases = aliases or {}

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The words, in the order in which they are to be read."""
        return list(self._places)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command for a word, imported now; None for an unknown word."""
        place = self._places.get(self._aliases.get(cmd_name, cmd_name))
        if place is None:
            return None
        module, _, name = place.partition(":")
        command = getattr(import_module(module), name)
        assert isinstance(command, click.Command)  # noqa: S101 - a wrong place
        return command
