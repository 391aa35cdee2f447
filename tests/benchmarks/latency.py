"""How soon the model of an idle chat has a message, against a write by hand.

    python -m tests.benchmarks.latency [--rounds N] [NAME...]

Owns the measuring of the real programs, offline against their fake models. Promises
that both ways of a row go to the same idle chat in turns, that time begins when the
message server said that it accepted the message (or when the hand began to write)
and ends when the whole request with the text in it was at the model, both by one
clock. Needs the programs of `make clients`; one that is not there is left out.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import httpx
import trio
from msgspec import Struct

from bridge.cli.demo_stage import NotSo
from bridge.clock import SystemClock
from tests.benchmarks.latency_chats import KINDS, WAIT_S, IdleChat, Kind
from tests.benchmarks.table import Row, median, milliseconds, ratio, rendered
from tests.fakes.model_server import ModelRequest
from tests.real_clients.house import House, house_on
from tests.real_clients.rig.computer import computer_in
from tests.real_clients.rig.waiting import NeverHappened, wait_until

# What a chat does behind its answer is over by then.
CALM_S = 0.4
# The first ones meet a program that still loads what it needs.
_WARM_UP = 2
_CALL = "/api/external/v1/call"


class Server:
    """The bridge's own message server, spoken to as a sender's bridge would."""

    def __init__(self, house: House) -> None:
        token = json.loads((house.state / "server" / "parent.json").read_bytes())
        place = house.state / "run" / "server.sock"
        self._http = httpx.Client(
            transport=httpx.HTTPTransport(uds=str(place)),
            base_url="http://server",
            headers={"Authorization": f"Bearer {token['token']}"},
        )

    def send(self, name: str, text: str) -> float:
        """When the server said that it has it, in seconds of the running clock."""
        said = {"action": "send", "target": f"agent:{name}", "message": text}
        call = {"name": "messages", "arguments": said}
        answer = self._http.post(_CALL, json=call)
        at = SystemClock().running()
        if answer.status_code != 200:
            raise NotSo(f"the server said {answer.status_code}: {answer.text}")
        return at

    def close(self) -> None:
        """Let it go."""
        self._http.close()


class Taken(Struct):
    """The samples of one program, in milliseconds."""

    by_message: list[float] = []
    by_hand: list[float] = []


async def measured(chat: IdleChat, server: Server, rounds: int) -> Taken:
    """In turns, so that a busy moment of the computer meets both."""
    taken = Taken()
    for number in range(rounds + _WARM_UP):
        text = f"Message number {number}: shall we look at the parser together?"
        begun = server.send("bob", text)
        request = await _at_model(chat, text)
        message_ms = (request.at_s - begun) * 1000
        text = f"Line number {number}, by hand, and as long as an offer is"
        begun = await chat.write(text.ljust(len(request.arrived), "."))
        request = await _at_model(chat, text)
        if number >= _WARM_UP:
            taken.by_message.append(message_ms)
            taken.by_hand.append((request.at_s - begun) * 1000)
    return taken


async def _at_model(chat: IdleChat, text: str) -> ModelRequest:
    """The request that brought it, once the chat is idle and calm again."""
    (request,) = await wait_until(
        lambda: chat.model.turns(containing=text), f"{text!r} at the model", WAIT_S
    )
    await chat.rest()
    await trio.sleep(CALM_S)
    return request


async def row_of(kind: Kind, rounds: int) -> Row:
    """One program on a scratch computer of its own."""
    # Sockets below it must keep within 103 bytes.
    folder = Path(tempfile.mkdtemp(prefix="aw-"))
    try:
        async with computer_in(folder) as computer, house_on(computer) as house:
            await house.start()
            async with kind.open(house) as chat:
                server = Server(house)
                try:
                    return _row(kind, await measured(chat, server, rounds))
                finally:
                    server.close()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _row(kind: Kind, taken: Taken) -> Row:
    message, hand = median(taken.by_message), median(taken.by_hand)
    beside = f"{milliseconds(message)}, {kind.hand} {milliseconds(hand)}"
    return ratio(f"{kind.title}: message to model", message, hand, None, beside)


def main(words: Sequence[str]) -> int:
    """The exit code."""
    said = argparse.ArgumentParser(prog="python -m tests.benchmarks.latency")
    said.add_argument("--rounds", type=int, default=15)
    said.add_argument("names", nargs="*", metavar="NAME", help=", ".join(KINDS))
    options = said.parse_args(words)
    chosen = [KINDS[name] for name in options.names or KINDS]
    present = [kind for kind in chosen if kind.is_installed]
    for kind in chosen:
        if kind not in present:
            say(f"{kind.title} is not installed: make clients")
    rows = [row for kind in present if (row := tried(kind, options.rounds))]
    load = os.getloadavg()[0]
    say(f"\n{rendered(rows)}\n\n{explained(options.rounds, load)}")
    return 0 if len(rows) == len(present) > 0 else 1


def tried(kind: Kind, rounds: int) -> Row | None:
    """The row of one program; None, and a word, where it did not come to its end."""
    say(f"{kind.title} ...")
    try:
        return trio.run(row_of, kind, rounds)
    except (NotSo, NeverHappened) as error:
        say(f"{kind.title} was not measured: {error}")
        return None


def say(text: str) -> None:
    """A line or more for the person, now."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def explained(rounds: int, load: float) -> str:
    """How to read the table."""
    return (
        f"Medians of {rounds} messages to an idle chat, each followed by a text of the"
        " same length by hand, from acceptance by\nthe server (or the begin of the"
        " write) to the model's whole request. Both start a turn with our hooks in it."
        f"\nLoad at the end: {load:.1f} on {os.cpu_count()} processors."
    )


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
