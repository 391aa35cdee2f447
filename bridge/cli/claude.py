"""`claude`: Claude Code, started so that messages may wake its chat.

Owns what is added to the person's own words. Promises to say it, and that the
person's words follow as they were given; Claude Code itself asks for the rest.
"""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import click

from bridge.cli.invocation import Invocation, verb
from bridge.core.visible import one_line
from bridge.errors import Refused

_PROGRAM = "claude"


@verb("claude")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[-- ARGS]")
def claude(invocation: Invocation, arguments: Sequence[str]) -> None:
    """Start Claude Code with AgentWorks' channel.

    Claude Code asks you to confirm it. Messages can then start a turn in an idle
    chat by the vendor's own way, where that is switched on for you. The hooks need
    none of this. What follows -- goes to Claude Code.
    """
    from bridge.providers.claude_channels import FLAG, PLUGIN

    program = shutil.which(_PROGRAM)
    if program is None:
        raise Refused(
            "no_provider",
            "Claude Code (claude) is not on PATH, so nothing was started.",
            "Install it, or put its folder on PATH.",
        )
    # The flag takes every word up to the next option: it comes last but for "--".
    words = [_PROGRAM, *_with_flag(arguments, f"{FLAG}={PLUGIN}")]
    _say(f"Starting: {shlex.join(words)}")
    if not _is_set_up(invocation, Path.cwd()):
        _say(
            "This folder is not set up for it: without the plugin there is no channel."
            " Set it up with: agentworks attach --provider claude"
        )
    os.execv(program, words)  # noqa: S606 - it takes this terminal over


def _with_flag(arguments: Sequence[str], flag: str) -> list[str]:
    place = arguments.index("--") if "--" in arguments else len(arguments)
    return [*arguments[:place], flag, *arguments[place:]]


def _is_set_up(invocation: Invocation, folder: Path) -> bool:
    from bridge import assets
    from bridge.providers import claude_install
    from bridge.providers.scope import Scope, home_of

    templates, state = assets.folder("plugins"), invocation.paths.state
    places = ((folder, Scope.PROJECT), (home_of(os.environ), Scope.ACCOUNT))
    for place, scope in places:
        # Whatever is wrong with its settings is Claude Code's to say.
        with suppress(Refused):
            if not claude_install.plan(place, state, templates, scope).changes:
                return True
    return False


def _say(text: str) -> None:
    click.echo(one_line(text), err=True)
