"""One run of the command line: what was asked for everywhere, and the daemon.

Owns the global options, which may stand before or after a command's name.
Promises that a command pays for the daemon's client and the settings only when
it uses them.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

import click

from bridge.errors import EXIT_CONFIG, EXIT_CONFLICT, Refused, Unavailable

if TYPE_CHECKING:
    from bridge.config import Settings
    from bridge.local.requests import Request
    from bridge.paths import Paths

Answer = TypeVar("Answer")


class Invocation:
    """What the person asked for on this command line, whatever the command."""

    def __init__(self) -> None:
        self.as_json = False
        self.config = ""
        self.server = ""

    @cached_property
    def paths(self) -> Paths:
        """The person's folders; raises Refused (exit 78)."""
        from bridge.paths import locate

        return locate(os.path.abspath(self.config) if self.config else None)

    @cached_property
    def settings(self) -> Settings:
        """The settings file with --server applied; raises Refused (exit 78)."""
        from bridge.config import load_settings

        self._require_named_file()
        return load_settings(self.paths.config_file, self.server)

    def _require_named_file(self) -> None:
        """A file that was named on purpose and is not there is a slip of the pen."""
        if self.config and not self.paths.config_file.exists():
            raise Refused(
                "no_such_settings",
                f"There is no settings file {self.paths.config_file}, so nothing was "
                "started.",
                "Check the name after --config, or leave it out for the default one.",
                exit_code=EXIT_CONFIG,
            )

    def ask(self, request: Request, answer_s: float | None = None) -> bytes:
        """The daemon's answer as JSON text; raises what it refused with."""
        from bridge.local.client import ANSWER_S, call

        try:
            self._require_chosen_server()
            return call(self.paths, request, answer_s or ANSWER_S)
        except Unavailable as error:
            if error.code != "bridge_not_running":
                raise
            from bridge.cli import managed
            from bridge.service.refusal import explained

            why = managed.explained(self.paths, error)
            raise explained(self.paths, why) from error

    def ask_for(
        self, answer: type[Answer], request: Request, answer_s: float | None = None
    ) -> Answer:
        """The daemon's answer as one of the answer Structs."""
        from bridge.local.replies import decode_answer

        return decode_answer(self.ask(request, answer_s), answer)

    def _require_chosen_server(self) -> None:
        """With --server, only a bridge that uses it is asked anything."""
        if not self.server:
            return
        from bridge.cli.lifecycle import hello

        self.require_server(hello(self.paths).server)

    def require_server(self, used: str) -> None:
        """With --server, a bridge that uses another one is the wrong bridge.

        Raises Refused (exit 4).
        """
        from bridge.config import EMBEDDED

        wanted = self.settings.server or EMBEDDED
        if self.server and used != wanted:
            raise Refused(
                "other_server",
                f"The running bridge uses the server {used}, not {wanted}, so nothing"
                " was done.",
                "Leave --server out, or restart it: agentworks bridge restart"
                f" --server {self.server}",
                exit_code=EXIT_CONFLICT,
            )


def _keep(context: click.Context, option: click.Parameter, value: object) -> None:
    invocation = context.find_object(Invocation)
    if value and invocation is not None and option.name is not None:
        setattr(invocation, option.name, value)


def global_options() -> list[click.Parameter]:
    """Fresh options for one command; given twice, the last one counts."""
    return [
        click.Option(
            ["--config"],
            metavar="FILE",
            help="Settings file (or AGENTWORKS_CONFIG).",
            expose_value=False,
            callback=_keep,
        ),
        click.Option(
            ["--server"],
            metavar="URL",
            help="Message server, or: embedded.",
            expose_value=False,
            callback=_keep,
        ),
        click.Option(
            ["--json", "as_json"],
            is_flag=True,
            help="One JSON document on standard output.",
            expose_value=False,
            callback=_keep,
        ),
    ]


def verb(name: str) -> Callable[[Callable[..., object]], click.Command]:
    """A decorator like click.command, for a function of an Invocation.

    The command takes the global options after its name as well.
    """

    def decorate(function: Callable[..., object]) -> click.Command:
        passed = click.make_pass_decorator(Invocation)(function)
        command = click.command(name)(passed)
        command.params += global_options()
        return command

    return decorate
