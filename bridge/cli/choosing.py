"""Questions to the person at a terminal.

Promises that nothing is chosen or agreed to without a person at a terminal: a
question that cannot be asked is refused with the option that answers it. What is
asked goes to standard error, so that standard output stays one document.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click

from bridge.cli.present import styled
from bridge.core.visible import one_line
from bridge.errors import EXIT_USAGE, Refused

_TRIES = 3


def choose(
    question: str,
    lines: Sequence[str],
    may_take_all: bool = False,
    otherwise: str = "",
) -> tuple[int, ...]:
    """The places of the chosen lines; all of them only as `all N`, with their count.

    `otherwise` is one more line, which is never one of all. With arrow keys or
    numbers; where the screen is no such terminal, with numbers.
    Raises Refused (exit 2) without a terminal or after three useless answers, and
    click.Abort when the person gives it up.
    """
    _require_terminal("name the one you mean with --session")
    from bridge.cli import picking  # only who is asked pays for it

    if picking.can_draw():
        return picking.pick(question, lines, may_take_all, otherwise)
    shown = [*lines, *filter(None, [otherwise])]
    for number, line in enumerate(shown, 1):
        click.echo(f"  {styled(str(number), bold=True)}  {one_line(line)}", err=True)
    everything = f", or: all {len(lines)}" if may_take_all and len(lines) > 1 else ""
    hint = f"{question} (1 to {len(shown)}{everything})"
    for _ in range(_TRIES):
        said = click.prompt(hint, err=True).strip().lower()
        if everything and said == f"all {len(lines)}":
            return tuple(range(len(lines)))
        if said.isdecimal() and 1 <= int(said) <= len(shown):
            return (int(said) - 1,)
        click.echo("That is none of them.", err=True)
    raise Refused(
        "nothing_chosen",
        "Nothing was chosen, so nothing was done.",
        "Run the command again.",
        exit_code=EXIT_USAGE,
    )


def agree(question: str, option: str) -> bool:
    """The person's yes or no; `option` says yes where nobody can be asked.

    Raises Refused (exit 2) without a terminal.
    """
    _require_terminal(f"say yes beforehand with {option}")
    return click.confirm(question, err=True)


def _require_terminal(instead: str) -> None:
    if not sys.stdin.isatty():
        raise Refused(
            "needs_person",
            "This needs an answer of the person, and there is no terminal to ask at,"
            " so nothing was done.",
            f"Run it in a terminal, or {instead}.",
            exit_code=EXIT_USAGE,
        )
