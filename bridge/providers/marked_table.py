"""Our own table at the end of somebody's TOML file, between two comment lines.

Owns adding it and taking it out, together with what the person put between the
two lines. Promises that no other byte changes, that the file means the same with
it as without it apart from that table, and that taking it out gives the first
text again, byte for byte. A text that is not TOML, or would mean something else
afterwards, raises NotStrict with the line.
"""

from __future__ import annotations

import re
import tomllib

from bridge.providers.strict_json import NotStrict, line_of

_LINE = re.compile(r"at line (\d+)")


def parsed(text: str) -> dict[str, object]:
    """The whole text; raises NotStrict."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        match = _LINE.search(str(error))
        line = line_of(text, len(text)) if match is None else int(match.group(1))
        raise NotStrict(line, "this is not TOML") from error
    except RecursionError as error:
        raise NotStrict(1, "this is nested too deeply") from error


def with_block(text: str | None, block: str) -> str:
    """The text with `block` (whole lines) at its end; None is no file yet.

    After a line that is not ended the block begins on the next line, after a
    line that is, one line further: so the end of the text before can be told.
    """
    if text is None:
        return block
    grown = f"{text}\n{block}"
    _require_sum(text, block, grown)
    return grown


def is_marked(text: str, block: str) -> bool:
    """Are the block's first and last line there, with whatever between them?"""
    return _region(text, block) is not None


def without_block(text: str, block: str) -> str | None:
    """The text without the block, whatever was changed inside it.

    None when nothing else was ever in the file. Raises ValueError when its two
    comment lines are not there.
    """
    region = _region(text, block)
    if region is None:
        raise ValueError("the block is not there")
    before, after = text[: region.start], text[region.stop :]
    if not before and not after:
        return None
    shorter = before.removesuffix("\n") + after
    _require_sum(shorter, text[region.start : region.stop], text)
    return shorter


def _region(text: str, block: str) -> slice | None:
    lines = block.splitlines(keepends=True)
    start = text.find(lines[0])
    end = text.find(lines[-1], start)
    if start < 0 or end < 0:
        return None
    return slice(start, end + len(lines[-1]))


def _require_sum(text: str, block: str, whole: str) -> None:
    """`whole` must mean what `text` and `block` mean, each by itself."""
    expected = _merged(parsed(text), parsed(block))
    if parsed(whole) != expected:
        line = line_of(whole, whole.find(block) + len(block))
        raise NotStrict(line, "what stands here belongs to the table of agentworks")


def _merged(first: dict[str, object], second: dict[str, object]) -> dict[str, object]:
    merged = dict(first)
    for name, value in second.items():
        there = merged.get(name)
        if isinstance(there, dict) and isinstance(value, dict):
            value = _merged(there, value)
        merged[name] = value
    return merged
