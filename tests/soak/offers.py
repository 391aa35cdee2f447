"""A printed hook text, taken apart again.

Owns the reading of fences. Promises to find every message that an offer shows,
whole or as a notice, and every id that it names as unsure; a text that is no
offer of ours has none.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_HEADER = re.compile(r"^AgentWorks \[([0-9a-f]{16,})\] for (\S+) ", re.MULTILINE)
_ID = r"(?P<id>msg-[0-9a-f-]+)"
_UNSURE = re.compile(rf"^{_ID} may not have reached you; ", re.MULTILINE)
_REFUSED = re.compile(r"^Your message (\S+) to \S+ was refused ", re.MULTILINE)


@dataclass(frozen=True)
class Shown:
    """One message in an offer; `body` is None where it was only a notice."""

    message_id: str
    inbox_id: str
    sender: str
    body: str | None


@dataclass(frozen=True)
class Printed:
    """One offer: whom it is for, what it shows and what it says besides."""

    name: str
    shown: tuple[Shown, ...]
    unsure: tuple[str, ...]
    refused: tuple[str, ...]


def printed(text: str) -> Printed | None:
    """The offer in this text, None for nothing or anything else."""
    header = _HEADER.search(text)
    if header is None:
        return None
    nonce, name = header[1], header[2]
    return Printed(name, _shown(nonce, text), *_lines(nonce, text))


def _shown(nonce: str, text: str) -> tuple[Shown, ...]:
    origin = rf"(?P<sender>[^\s,]+)[^\n]*?, [^\n,]+, {_ID}, (?P<inbox>inbox-[0-9a-f-]+)"
    whole = rf"from {origin}\n(?P<body>.*?)\n\[{nonce}\] end of message (?P=number)$"
    notice = rf"is too large to show here: from {origin}\. "
    found = re.finditer(
        rf"^\[{nonce}\] message (?P<number>\d+) of \d+ (?:{whole})",
        text,
        re.MULTILINE | re.DOTALL,
    )
    cut = re.finditer(rf"^\[{nonce}\] message (?P<number>\d+) of \d+ {notice}", text, 8)
    both = [(int(each["number"]), _one(each)) for each in (*found, *cut)]
    return tuple(shown for _, shown in sorted(both, key=lambda pair: pair[0]))


def _one(found: re.Match[str]) -> Shown:
    return Shown(
        found["id"], found["inbox"], found["sender"], found.groupdict().get("body")
    )


def _lines(nonce: str, text: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What stands outside of every fence."""
    fenced = (
        rf"^\[{nonce}\] message (\d+) of \d+ from .*?^\[{nonce}\] end of message \1$"
    )
    outside = re.sub(fenced, "", text, flags=re.MULTILINE | re.DOTALL)
    unsure = tuple(each["id"] for each in _UNSURE.finditer(outside))
    return unsure, tuple(_REFUSED.findall(outside))
