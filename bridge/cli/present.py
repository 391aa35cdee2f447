"""How the command line shows things: text for people, JSON for programs.

Promises that no control character, of a message or a name or a path, reaches the
terminal raw; that colour is used on a terminal only and never with NO_COLOR; and
that a printed command works as pasted.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Sequence

import click

from bridge.core.visible import one_line, visible
from bridge.errors import BridgeError

# Ours in a shell; /agentworks and $agentworks are typed in a chat.
_COMMAND = re.compile(r"(?<![/$\w])agentworks (?=[a-z-])")
_COLOURS = {
    "attached": "green",
    "running": "green",
    "held": "yellow",
    "offline": "bright_black",
}


def say(text: str) -> None:
    """Text for the person; its control characters are shown as escapes."""
    click.echo(visible(text))


def advise(text: str) -> None:
    """As say, for our own words, whose commands are shown as they can be pasted."""
    say(with_program(text))


def document(content: object) -> None:
    """One JSON document in ASCII, so that no text in it drives a terminal."""
    click.echo(as_json(content))


def as_json(content: object) -> str:
    """The document's text; bytes are JSON already and only laid out anew."""
    import json  # only a command that shows JSON pays for it

    value = json.loads(content) if isinstance(content, bytes) else content
    text = json.dumps(value, ensure_ascii=True, indent=2)
    return text.replace("\x7f", "\\u007f")


def tell_error(code: str, sentence: str, in_json: bool) -> None:
    """An error on standard error, as one line or one JSON document."""
    line = with_program(one_line(sentence, limit=4000))
    if in_json:
        click.echo(as_json({"error": {"code": code, "message": line}}), err=True)
    else:
        click.echo(f"Error: {line}", err=True)


def tell_bridge_error(error: BridgeError, in_json: bool) -> None:
    """What happened, what it means and what to do."""
    tell_error(error.code, error.sentence(), in_json)


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns for people; the first line is the heading."""
    shown = [tuple(map(one_line, row)) for row in rows]
    widths = [max(map(len, column)) for column in zip(head, *shown, strict=True)]
    lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in (head, *shown)]
    return "\n".join([styled(lines[0], bold=True), *lines[1:]])


def styled(text: str, bold: bool = False, colour: str | None = None) -> str:
    """The text in bold or colour where the output is a terminal that wants it."""
    if not sys.stdout.isatty() or os.environ.get("NO_COLOR"):
        return text
    return click.style(text, bold=bold, fg=colour)


def state_styled(text: str, state: str) -> str:
    """The text in the colour of a state's meaning."""
    return styled(text, colour=_COLOURS.get(state))


def ago(seconds: float | None) -> str:
    """How long ago, in the largest whole unit; `-` for never."""
    from bridge.core.standing import duration  # only a text with an age pays for it

    return "-" if seconds is None else duration(seconds)


def with_program(text: str) -> str:
    """The text with our commands as they can be pasted in this shell."""
    program = own_program()
    if program == "agentworks":
        return text
    return _COMMAND.sub(lambda _: f"{program} ", text)


def own_program() -> str:
    """`agentworks` where PATH finds this very program, else how it was started."""
    import shutil  # only a text that names a command pays for it

    started = sys.argv[0]
    if os.path.basename(started) == "__main__.py":
        return f"{shlex.quote(sys.executable)} -m bridge"
    found = shutil.which("agentworks")
    if found is not None and os.path.realpath(found) == os.path.realpath(started):
        return "agentworks"
    return shlex.quote(os.path.abspath(started))
