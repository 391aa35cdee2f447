#!/usr/bin/env python3
"""The README's table of programs, made from the code that decides what each can do.

    provider-table.py            prints it
    provider-table.py --write    puts it between its two marks in README.md
    provider-table.py --check    exits 1 when README.md says something else

Promises that nothing in it was typed by hand but the words for a route and an
event: what a program has is read from its module, and a route that nothing finds
is no route.
"""

from __future__ import annotations

import difflib
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from bridge.core.caller import HookEvent  # noqa: E402
from bridge.core.command import chat_word  # noqa: E402
from bridge.driver.finding import FINDERS  # noqa: E402
from bridge.providers.known import PROVIDERS, Provider  # noqa: E402

README = ROOT / "README.md"
BEGIN = "<!-- programs: begin (written by packaging/scripts/provider-table.py) -->\n"
END = "<!-- programs: end -->\n"
HEAD = ("program", "turn end", "mid-turn", "idle wake", "attach in chat", "tested how")
# How a native way wakes an idle chat, and with which programs it was seen to join
# a running turn.
WAYS: Mapping[str, tuple[str, frozenset[str]]] = {
    "adapter": ("our extension", frozenset({"opencode"})),
    "agy_agentapi": ("its `agentapi`", frozenset()),
    "claude_channel": ("channel, where switched on", frozenset()),
    "claude_session": ("session inbox", frozenset({"claude"})),
    "codex_app_server": ("app-server", frozenset({"codex"})),
    "codex_desktop": ("desktop app (`--native-remote`)", frozenset()),
    "qwen_input": ("input file", frozenset()),
}
# What a person may ask for besides, and the event that it needs.
AT_PROMPT = {HookEvent.PROMPT: "`--at-prompt`: with the next prompt"}
MID_TURN = {HookEvent.TOOL_ENDED: "`--mid-turn`: after a tool"}
NONE = "—"


def table() -> str:
    """The whole table in Markdown."""
    rows = [HEAD, *map(row, PROVIDERS.values())]
    lines = [f"| {' | '.join(cells)} |\n" for cells in rows]
    lines.insert(1, "|---" * len(HEAD) + "|\n")
    return "".join(lines)


def row(provider: Provider) -> tuple[str, ...]:
    """What this program can do."""
    ways = [WAYS[route] for route in provider.ROUTES if route in FINDERS]
    joining = [how for how, joined in ways if provider.NAME in joined]
    ends = ["yes"] if HookEvent.TURN_ENDED in provider.OFFERS_AT else []
    return (
        provider.TITLE,
        "; ".join([*ends, *wishes(provider, AT_PROMPT)]) or NONE,
        "; ".join([*joining, *wishes(provider, MID_TURN)]) or NONE,
        "; ".join(how for how, _ in ways) or NONE,
        f"`{chat_word(provider.NAME)} attach`" if is_typed_in(provider) else NONE,
        provider.TRIED,
    )


def wishes(provider: Provider, words: Mapping[HookEvent, str]) -> list[str]:
    """What of these its person can ask for."""
    return [said for event, said in words.items() if event in provider.OFFERS_AT]


def is_typed_in(provider: Provider) -> bool:
    """Is there an event at which this program's hook answers a typed command?"""
    for event in (HookEvent.COMMAND, HookEvent.PROMPT):
        try:
            provider.print_block(event, "text")
        except ValueError:
            continue
        return True
    return False


def parts(readme: str) -> tuple[str, str, str]:
    """What stands before, between and after the marks; SystemExit without them."""
    before, begin, rest = readme.partition(BEGIN)
    between, end, after = rest.partition(END)
    if not (begin and end):
        raise SystemExit(f"README.md has not the two marks {BEGIN}{END}")
    return before, between, after


def differences(there: str, wanted: str) -> Iterator[str]:
    """The lines that differ."""
    names = ("README.md", "the code")
    return difflib.unified_diff(
        there.splitlines(True), wanted.splitlines(True), *names, n=0
    )


def main(words: list[str]) -> int:
    """Run it; the exit code."""
    wanted = table()
    if not words:
        sys.stdout.write(wanted)
        return 0
    if words not in (["--check"], ["--write"]):
        sys.stderr.write("usage: provider-table.py [--check | --write]\n")
        return 2
    before, between, after = parts(README.read_text())
    if words == ["--write"]:
        README.write_text(f"{before}{BEGIN}{wanted}{END}{after}")
        return 0
    sys.stderr.writelines(differences(between, wanted))
    if between != wanted:
        sys.stderr.write("Run packaging/scripts/provider-table.py --write\n")
    return int(between != wanted)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
