"""How many messages a server's file holds that nobody has acknowledged."""

from __future__ import annotations

from pathlib import Path

import pytest

from bridge.server.undelivered import undelivered
from tests.fakes.message_server import Served, good


def test_where_no_server_was_nothing_is_undelivered(tmp_path: Path) -> None:
    assert undelivered(tmp_path / "server.sqlite3") == 0
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("content", [b"", b"no database" * 400])
def test_a_file_that_is_no_database_cannot_be_counted(
    tmp_path: Path, content: bytes
) -> None:
    database = tmp_path / "server.sqlite3"
    database.write_bytes(content)

    assert undelivered(database) is None
    assert database.read_bytes() == content


async def test_what_no_agent_has_acknowledged_is_counted_while_the_server_runs(
    server: Served, tmp_path: Path
) -> None:
    alice, bob = await server.attach("alice"), await server.attach("bob")
    sent = [good(await alice.send("bob", "hello", f"id-{n}")) for n in range(3)]
    await bob.say(sent[0]["message_id"], "admitted")

    (database,) = tmp_path.glob("*.sqlite3")
    assert undelivered(database) == 2
