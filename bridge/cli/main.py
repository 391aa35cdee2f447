"""The command line: its commands, how an error is told, what it ends with.

Promises that a command's run imports nothing of the others, that every error is
one line for a person or one JSON document for a program, and that the exit code
says what to do next (bridge/errors.py).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

import click

from bridge.cli.invocation import Invocation
from bridge.cli.lazy import LazyGroup
from bridge.cli.present import tell_bridge_error, tell_error
from bridge.errors import EXIT_FAILED, EXIT_OK, EXIT_USAGE, BridgeError
from bridge.version import VERSION

agentworks = LazyGroup(
    "agentworks",
    {
        "up": "bridge.cli.up:up",
        "demo": "bridge.cli.demo:demo",
        "attach": "bridge.cli.attach:attach",
        "detach": "bridge.cli.agents:detach",
        "agents": "bridge.cli.agents:agents",
        "messages": "bridge.cli.messages:messages",
        "monitor": "bridge.cli.monitor:monitor",
        "bridge": "bridge.cli.bridge:bridge",
        "server": "bridge.cli.server:server",
        "claude": "bridge.cli.claude:claude",
        "mcp": "bridge.cli.mcp:mcp",
    },
    "Let the coding agents on this computer send each other messages.",
    aliases={"agent": "agents"},
)
click.version_option(VERSION, prog_name="agentworks")(agentworks)

_INTERRUPTED = 130  # what a shell says of a program that Ctrl-C ended


def run_command(arguments: Sequence[str]) -> int:
    """Run one command line; its exit code."""
    invocation = Invocation()
    try:
        ended = agentworks.main(
            list(arguments), "agentworks", standalone_mode=False, obj=invocation
        )
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader of our output went away; there is nobody left to tell, and
        # the interpreter must not try to flush into the pipe again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_FAILED
    except BridgeError as error:
        tell_bridge_error(error, invocation.as_json)
        return error.exit_code
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message())
        return EXIT_USAGE
    except click.ClickException as error:
        tell_error("usage", _usage(error), invocation.as_json or "--json" in arguments)
        return EXIT_USAGE
    except (click.Abort, KeyboardInterrupt):
        if sys.stderr.isatty():
            click.echo(err=True)  # the shell's next line is not to follow ^C
        return _INTERRUPTED
    return ended if isinstance(ended, int) else EXIT_OK


def _usage(error: click.ClickException) -> str:
    context = getattr(error, "ctx", None)
    command = context.command_path if context is not None else "agentworks"
    message = error.format_message().replace("?.", "?").rstrip(".")
    stop = "" if message.endswith("?") else "."
    return f"{message}{stop} See: {command} --help"
