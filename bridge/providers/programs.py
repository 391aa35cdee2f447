"""What a process's facts say about the program that it runs.

Owns the reading of program paths and command lines for `is_program`. Promises
that a program that was deleted by an update is still recognised, and that a
missing argument is the empty text.
"""

from __future__ import annotations

from bridge.core.caller import ProcessFacts

# The kernel's own mark on a program file that an update has replaced.
_DELETED = " (deleted)"
_SCRIPT_RUNNERS = frozenset({"node", "nodejs", "bun"})


def program_name(facts: ProcessFacts) -> str:
    """The file name of the program, without its folder."""
    return facts.program.removesuffix(_DELETED).rpartition("/")[2]


def program_folder(facts: ProcessFacts) -> str:
    """The folder of the program."""
    return facts.program.removesuffix(_DELETED).rpartition("/")[0]


def argument_name(facts: ProcessFacts, number: int) -> str:
    """The last part of argument `number` (0 is the command), empty if missing."""
    if number >= len(facts.arguments):
        return ""
    return facts.arguments[number].rpartition("/")[2]


def is_script_runner(facts: ProcessFacts) -> bool:
    """Does it run a script of its first argument, as node and bun do?"""
    return program_name(facts) in _SCRIPT_RUNNERS


def is_native(facts: ProcessFacts, name: str) -> bool:
    """Is it the program of this name, started under it?

    With an unreadable program both kernel name and argv[0] must say so.
    """
    command = argument_name(facts, 0)
    if not facts.program:
        return facts.name == name and command == name
    return program_name(facts) == name and command in (name, "")


def script_of(facts: ProcessFacts) -> str:
    """The script that a script runner runs, empty for any other program.

    The first argument that is no option. With an unreadable program the command
    line stands alone: whoever is taken for an agent's program gains nothing.
    """
    runner = program_name(facts) if facts.program else argument_name(facts, 0)
    if runner not in _SCRIPT_RUNNERS:
        return ""
    words = (word for word in facts.arguments[1:] if not word.startswith("-"))
    return next(words, "")
