"""Fault row 45: messages and tokens are nowhere but where they belong.

Every journey looks for them too (tests/journeys/conftest.py).
"""

from __future__ import annotations

import sqlite3
import subprocess
from pathlib import Path

import pytest
import trio

from tests.faults import failing
from tests.hooks.conftest import HOOKS, with_first_line
from tests.journeys.rig.canary import BODY
from tests.journeys.rig.computer import Computer
from tests.journeys.rig.puppets import Denied
from tests.real_clients.rig.waiting import wait_until

FAILING = Path(failing.__file__)


@pytest.mark.slow
@pytest.mark.parametrize(
    "function",
    [
        "_fenced",  # a message is shown
        "draft_offer",
        "_submission",  # a message is sent
        "_request",  # a token is used
    ],
)
async def test_the_last_words_of_a_crash_show_no_message_and_no_token(
    computer: Computer, function: str
) -> None:
    trigger = computer.home / "now"
    computer.install()
    command = [str(FAILING), str(computer.state), function, str(trigger)]
    daemon = await computer.run(command, "failing")
    await daemon.until(computer.answers, "an answer to hello")
    alice, bob = await computer.settled("alice"), await computer.settled("bob")
    await alice.send("bob", "before the crash")
    await computer.until_row("bob", pending=1)

    trigger.touch()
    await bob.stop()
    if daemon.ended is None:
        with pytest.raises(Denied):
            await alice.send("bob", "in the crash")

    assert await daemon.end() == 1
    assert "KeyError: 'a mistake of ours'" in daemon.said
    assert f"in {function}" in daemon.said
    assert computer.canaries.look() == []


async def test_the_canaries_would_be_found(computer: Computer) -> None:
    """So that the other tests see what they say they see."""
    daemon = await computer.start_bridge()
    bob = await computer.settled("bob")
    token = next(iter(computer.canaries.tokens))
    record = computer.records / "made-up"

    record.write_text(f"line\n{BODY} {token}")
    found = computer.canaries.look()
    record.unlink()
    computer.environment["MADE_UP"] = token
    stranger = await computer.agent()
    shown = computer.canaries.look()
    await stranger.process.kill()

    assert found == [f"a body in {record}", f"a token in {record}"]
    assert len(shown) == 1
    assert str(stranger.process.pid) in shown[0]
    assert daemon.ended is None
    assert bob.name == "bob"


def kept(computer: Computer) -> bytes:
    """Every byte of the journal's files."""
    journal = computer.paths.journal
    return b"".join(
        place.read_bytes() for place in sorted(journal.parent.glob(f"{journal.name}*"))
    )


async def test_what_was_dealt_with_is_in_no_page_of_the_journal(
    computer: Computer,
) -> None:
    daemon = await computer.start_bridge()
    alice, bob = await computer.settled("alice"), await computer.settled("bob")
    sent = await alice.send("bob", "soon dealt with")
    await computer.until_row("bob", pending=1)
    assert BODY.encode() in kept(computer)
    await bob.mail()
    await bob.verb("ack", message_id=sent["message_id"], delivery="processed")
    await computer.person("detach", name="bob")
    await computer.until_gone("bob")

    assert await daemon.stop() == 0

    assert BODY.encode() not in kept(computer)
    with sqlite3.connect(computer.paths.journal) as journal:
        assert journal.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    journal.close()


async def test_what_waited_for_a_detached_agent_is_in_no_page_of_the_journal(
    computer: Computer,
) -> None:
    daemon = await computer.start_bridge()
    alice, _ = await computer.settled("alice"), await computer.settled("bob")
    await alice.send("bob", "never shown")
    await computer.until_row("bob", pending=1)
    assert BODY.encode() in kept(computer)
    await computer.person("detach", name="bob")
    await computer.until_gone("bob")

    assert await daemon.stop() == 0

    assert BODY.encode() not in kept(computer)


@pytest.mark.parametrize(
    "words", [("ask", "hook", "claude", "Stop"), ("pipe", "mcp", "claude")]
)
async def test_what_a_host_starts_shows_no_message_and_no_token(
    computer: Computer, words: tuple[str, ...]
) -> None:
    """A hook reads its prompt, and a child its calls, from standard input alone."""
    await computer.start_bridge()
    await computer.settled("bob")
    with_first_line(HOOKS / "pipe.py", computer.paths.bin / "pipe")
    program, *rest = words
    child = await trio.lowlevel.open_process(
        [str(computer.paths.bin / program), *rest],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        env=computer.environment,
    )
    assert child.stdin is not None
    await child.stdin.send_all(f'{{"prompt": "{BODY}"'.encode())
    try:
        await wait_until(lambda: is_ours(child.pid, program), "its start")

        assert computer.canaries.look() == []
    finally:
        child.kill()
        await child.wait()
        await child.stdin.aclose()


def is_ours(pid: int, program: str) -> bool:
    return f"bin/{program}" in Path(f"/proc/{pid}/cmdline").read_text()
