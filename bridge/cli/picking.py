"""A list at the person's terminal, chosen from with arrow keys or numbers.

Owns what each key does and how the list is drawn. Promises that the terminal is as
it was before when the choice is made, given up or interrupted; that all lines are
chosen only by typing `all` with their count; and that no line drives the terminal.
"""

from __future__ import annotations

import os
import select
import shutil
import sys
import termios
import tty
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import click

from bridge.core.visible import one_line

_UP = (b"\x1b[A", b"\x1bOA", b"k", b"\x10")
_DOWN = (b"\x1b[B", b"\x1bOB", b"j", b"\x0e")
_ENTER = (b"\r", b"\n")
_ERASE = (b"\x7f", b"\x08")
_GIVE_UP = (b"\x1b", b"q", b"\x03", b"\x04")
# The rest of an arrow key follows its first byte within this, a lone Esc has none.
_REST_S = 0.05
_TYPED_LIMIT = 16


class Picker:
    """What is marked and typed so far; `chosen` once the choice is made.

    `is_over` with nothing chosen: given up. `has_more`: one line after the `count`
    ones can be chosen too, and is never one of all.
    """

    def __init__(self, count: int, may_take_all: bool, has_more: bool = False) -> None:
        self.count = count + has_more
        self.of_all = count
        self.marked = 0
        self.typed = ""
        self.chosen: tuple[int, ...] = ()
        self.is_over = False
        self.is_wrong = False
        self.everything = f"all {count}" if may_take_all and count > 1 else ""

    def press(self, key: bytes) -> None:
        """One key; keys that mean nothing here do nothing."""
        self.is_wrong = False
        if self.typed == "" and key in _UP:
            self.marked = (self.marked - 1) % self.count
        elif self.typed == "" and key in _DOWN:
            self.marked = (self.marked + 1) % self.count
        elif key in _ENTER:
            self._enter()
        elif key in _ERASE:
            self.typed = self.typed[:-1]
        elif key in _GIVE_UP and (self.typed == "" or key != b"q"):
            self.is_over = True
        elif (len(key) == 1 and key.isalnum()) or (self.typed and key == b" "):
            self._type(key.decode())

    def _type(self, character: str) -> None:
        self.typed = (self.typed + character)[:_TYPED_LIMIT]
        if self._number() is not None:
            self.marked = self._number() or 0

    def _number(self) -> int | None:
        """The place that the typed number means, if it is one of the list."""
        if not self.typed.isdecimal() or not 1 <= int(self.typed) <= self.count:
            return None
        return int(self.typed) - 1

    def _enter(self) -> None:
        place = self.marked if self.typed == "" else self._number()
        if place is not None:
            self.chosen = (place,)
        elif self.everything and self.typed.lower().strip() == self.everything:
            self.chosen = tuple(range(self.of_all))
        self.is_over = bool(self.chosen)
        self.is_wrong = not self.chosen
        self.typed = self.typed if self.chosen else ""


def can_draw() -> bool:
    """Are both keyboard and screen a terminal that can move its cursor?"""
    is_plain = os.environ.get("TERM", "dumb") in ("", "dumb")
    return sys.stdin.isatty() and sys.stderr.isatty() and not is_plain


def pick(
    question: str, lines: Sequence[str], may_take_all: bool, otherwise: str = ""
) -> tuple[int, ...]:
    """The places of the chosen lines; raises click.Abort when it was given up."""
    picker = Picker(len(lines), may_take_all, bool(otherwise))
    lines = [*lines, *filter(None, [otherwise])]
    with _keys() as keys:
        drawn = _draw(picker, question, lines, 0)
        for key in keys:
            picker.press(key)
            drawn = _draw(picker, question, lines, drawn)
            if picker.is_over:
                break
    if not picker.chosen:
        raise click.Abort
    return picker.chosen


def _draw(picker: Picker, question: str, lines: Sequence[str], drawn: int) -> int:
    """Draw it over what was drawn before; how many lines it takes."""
    columns, rows = shutil.get_terminal_size()
    shown = [_cut(question, columns), *_list(picker, lines, columns, rows)]
    shown.append(_cut(_foot(picker), columns))
    back = f"\x1b[{drawn}F\x1b[J" if drawn else ""
    sys.stderr.write(back + "".join(f"{line}\n" for line in shown))
    sys.stderr.flush()
    return len(shown)


def _list(
    picker: Picker, lines: Sequence[str], columns: int, rows: int
) -> Iterator[str]:
    """As many lines around the marked one as the screen holds."""
    room = max(1, rows - 3)
    first = min(max(0, picker.marked - room // 2), max(0, len(lines) - room))
    for place in range(first, min(len(lines), first + room)):
        mark = ">" if place == picker.marked else " "
        text = _cut(f"{mark} {place + 1}  {one_line(lines[place])}", columns)
        is_bold = place == picker.marked and not os.environ.get("NO_COLOR")
        yield click.style(text, bold=True) if is_bold else text


def _foot(picker: Picker) -> str:
    if picker.is_wrong:
        return "That is none of them."
    if picker.typed:
        return f"Enter takes: {picker.typed}"
    everything = f", {picker.everything} for all" if picker.everything else ""
    return f"Arrow keys or a number, then Enter{everything}; Esc to leave."


def _cut(text: str, columns: int) -> str:
    return text if len(text) < columns else f"{text[: columns - 2]}…"


@contextmanager
def _keys() -> Iterator[Iterator[bytes]]:
    """The keys that the person presses, one by one, unechoed."""
    keyboard = sys.stdin.fileno()
    before = termios.tcgetattr(keyboard)
    try:
        tty.setcbreak(keyboard)
        yield _pressed(keyboard)
    finally:
        termios.tcsetattr(keyboard, termios.TCSADRAIN, before)


def _pressed(keyboard: int) -> Iterator[bytes]:
    while True:
        read = os.read(keyboard, 1)
        if not read:
            return  # the terminal is gone
        yield _whole(keyboard, read) if read == b"\x1b" else read


def _whole(keyboard: int, key: bytes) -> bytes:
    """A key of several bytes; a lone Esc is one byte and nothing follows it."""
    while len(key) < 8 and select.select([keyboard], [], [], _REST_S)[0]:
        key += os.read(keyboard, 1)
        if len(key) > 2 and 0x40 <= key[-1] <= 0x7E:
            break
    return key
