"""A printed hook text, taken apart again.

Owns the reading of fences. Promises to find every message that an offer shows,
whole or as a notice, and every id that it names as unsure; a text that is no
offer of ours has none.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_HEADER = re.compile(
    r"^AgentWorks \[([0-9a-f]{16,})\] for (\S+) .*?attachment (att-[0-9a-f-]+)",
    re.MULTILINE,
)
_SETUP = re.compile(
    r"^The person attached this process to AgentWorks as ", re.MULTILINE
)
_GUIDANCE = re.compile(r"^How messages between agents work ", re.MULTILINE)
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
    """One offer: whom it is for, what it shows and what it says besides.

    `once` are the things said in it that may be said once: the setup and the
    guidance of an attachment, each refused submission.
    """

    name: str
    shown: tuple[Shown, ...]
    unsure: tuple[str, ...]
    once: tuple[str, ...]


def printed(text: str) -> Printed | None:
    """The offer in this text, None for nothing or anything else."""
    header = _HEADER.search(text)
    if header is None:
        return None
    nonce, name, attachment = header.groups()
    outside = _outside(nonce, text)
    unsure = tuple(each["id"] for each in _UNSURE.finditer(outside))
    once = [f"refused {each}" for each in _REFUSED.findall(outside)]
    once += [f"setup of {attachment}"] if _SETUP.search(outside) else []
    once += [f"guidance of {attachment}"] if _GUIDANCE.search(outside) else []
    return Printed(name, _shown(nonce, text), unsure, tuple(once))


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


def _outside(nonce: str, text: str) -> str:
    """What stands outside of every fence."""
    opening, closing = rf"\[{nonce}\] message (\d+) of \d+ from ", "end of message"
    fenced = rf"^{opening}.*?^\[{nonce}\] {closing} \1$"
    return re.sub(fenced, "", text, flags=re.MULTILINE | re.DOTALL)
