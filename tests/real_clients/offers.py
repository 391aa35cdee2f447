"""The offers in what reached a model, whichever program brought them there.

Promises that an offer is found by its own header only, and a message in it only
between whole fences of that offer.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from itertools import pairwise

from msgspec import Struct

from tests.fakes.model_server import ModelRequest

_HEADER = re.compile(r"AgentWorks \[([0-9a-f]{16,})\] for (\S+) \(\w+\), attachment ")
# What Codex puts behind the text of a hook.
_CODEX_END = "</hook_prompt>"


class Offer(Struct, frozen=True):
    """One offer as the model has it; `bodies` are what stands between its fences."""

    name: str
    nonce: str
    bodies: tuple[str, ...]
    text: str

    @property
    def message_ids(self) -> tuple[str, ...]:
        """The messages in it, in order."""
        opening = rf"^\[{self.nonce}\] message \d+ of .*?(msg-[0-9a-f-]+)"
        return tuple(re.findall(opening, self.text, re.MULTILINE))


def offers_in(request: ModelRequest) -> list[Offer]:
    """The offers in the new text of one request."""
    text = request.new_text.replace(_CODEX_END, "")
    found = list(_HEADER.finditer(text))
    places = [*(match.start() for match in found), len(text)]
    return [
        _offer(match, text[start:end])
        for match, (start, end) in zip(found, pairwise(places), strict=True)
    ]


def bodies_in(requests: Iterable[ModelRequest]) -> list[str]:
    """Every message between whole fences in these requests, in order."""
    return [
        body
        for request in requests
        for offer in offers_in(request)
        for body in offer.bodies
    ]


def times_seen(requests: Iterable[ModelRequest], text: str) -> int:
    """How often these requests brought a text as new, in fences or not."""
    return sum(request.arrived.count(text) for request in requests)


def times_remembered(request: ModelRequest, text: str) -> int:
    """How often a text stands in the whole conversation that a request carries."""
    return json.dumps(request.body, ensure_ascii=False).count(text)


def _offer(header: re.Match[str], text: str) -> Offer:
    nonce, name = header.groups()
    fenced = (
        rf"^\[{nonce}\] message (\d+) of [^\n]*\n(.*?)\n\[{nonce}\] end of message \1$"
    )
    found = re.findall(fenced, text, re.MULTILINE | re.DOTALL)
    return Offer(name, nonce, tuple(body for _, body in found), text)
