"""A chat is chosen by what its own process says now, or it is refused with why."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from bridge.core.caller import ProcessFacts
from bridge.core.effects import SaveAttachment
from bridge.core.events import ProcessGone
from bridge.core.ids import SessionId
from bridge.driver import chats, finding, natives, stepping
from bridge.driver.bridge import Bridge
from bridge.errors import Refused
from bridge.local.requests import Attach
from bridge.providers import process
from tests.core.examples import BOB
from tests.driver.desk import open_bridge
from tests.driver.test_early_offers import say
from tests.driver.test_hooks import Codex, codex
from tests.providers.captured import captured
from tests.real_clients.rig.waiting import wait_until

__all__ = ["codex"]

SAID = captured("claude/registration_2.1.332")
SESSION = str(SAID["sessionId"])


class Claude:
    """A process that is called claude, and the file that it registers in."""

    def __init__(self, home: Path, facts: ProcessFacts) -> None:
        self.facts = facts
        self.file = home / ".claude" / "sessions" / f"{facts.pid}.json"
        self.file.parent.mkdir(parents=True, mode=0o700)
        self.register()

    def register(self, **changes: object) -> None:
        """It says which chat it has open."""
        own = {"pid": self.facts.pid, "procStart": str(self.facts.start)}
        said = SAID | own | {"peerProtocol": 1} | changes
        self.file.write_text(json.dumps(said))

    def wish(self, **changes: object) -> Attach:
        """An attach that names this very file."""
        wish = Attach(session_id=SESSION, native_remote=f"claude+session://{self.file}")
        return replace(wish, **changes)


@pytest.fixture
def claude(tmp_path: Path) -> Iterator[Claude]:
    program = tmp_path / "claude"
    shutil.copy("/bin/sleep", program)
    home = tmp_path / "home"
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(home)}
    with subprocess.Popen(
        ["claude", "1000"], executable=program, env=environment
    ) as started:
        facts = process.facts_of(started.pid)
        assert facts is not None
        yield Claude(home, facts)
        started.kill()


async def refusal(folder: Path, wish: Attach) -> Refused:
    async with open_bridge(folder) as bridge:
        with pytest.raises(Refused) as refused:
            await chats.chosen(bridge, wish)
    return refused.value


async def test_a_named_registration_is_its_process_and_its_chat(
    tmp_path: Path, claude: Claude
) -> None:
    async with open_bridge(tmp_path) as bridge:
        chosen = await chats.chosen(bridge, claude.wish())

    assert chosen.provider == "claude"
    assert chosen.session_id == SESSION
    assert chosen.key == process.key_of(claude.facts)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"procStart": "1"}, "no registration that can be trusted"),
        ({"sessionId": "0" * 8 + SESSION[8:]}, "another chat open"),
        ({"peerProtocol": 9}, "a protocol that is not known"),
        ({"messagingSocketPath": ""}, "has no inbox"),
    ],
)
async def test_a_registration_that_says_otherwise_is_refused_with_why(
    tmp_path: Path, claude: Claude, changes: dict[str, object], why: str
) -> None:
    claude.register(**changes)

    refused = await refusal(tmp_path, claude.wish())

    assert refused.code == "bad_native_remote"
    assert why in refused.message


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"session_id": ""}, "chat's own id"),
        ({"native_pid": 1}, "another process"),
        ({"provider": "codex"}, "leads to claude"),
        ({"native_remote": "claude+session:///tmp/x.json"}, "PID.json"),
        ({"native_remote": "claude+session://x/sessions/1.json"}, "not absolute"),
    ],
)
async def test_a_way_that_is_named_wrongly_is_refused_with_why(
    tmp_path: Path, claude: Claude, changes: dict[str, object], why: str
) -> None:
    refused = await refusal(tmp_path, claude.wish(**changes))

    assert refused.code == "bad_native_remote"
    assert why in refused.message


async def test_a_copy_of_a_registration_elsewhere_is_refused(
    tmp_path: Path, claude: Claude
) -> None:
    copy = tmp_path / "sessions" / claude.file.name
    copy.parent.mkdir(mode=0o700)
    shutil.copy(claude.file, copy)

    refused = await refusal(
        tmp_path, claude.wish(native_remote=f"claude+session://{copy}")
    )

    assert "another file" in refused.message


async def test_the_file_of_another_program_is_refused(tmp_path: Path) -> None:
    remote = f"claude+session:///x/sessions/{os.getpid()}.json"

    refused = await refusal(tmp_path, Attach(session_id=SESSION, native_remote=remote))

    assert refused.code == "other_program"


async def test_the_file_of_a_process_that_is_gone_is_refused(
    tmp_path: Path, claude: Claude
) -> None:
    gone = f"claude+session://{claude.file.parent}/999999999.json"

    refused = await refusal(tmp_path, claude.wish(native_remote=gone))

    assert refused.code == "no_such_process"


async def test_a_codex_chat_with_a_named_way_needs_its_process(tmp_path: Path) -> None:
    wish = Attach(session_id=SESSION, native_remote="unix:///run/codex.sock")

    refused = await refusal(tmp_path, wish)

    assert refused.code == "no_such_session"
    assert "codex" in refused.message


async def test_where_a_way_is_named_no_other_is_found(
    tmp_path: Path, claude: Claude
) -> None:
    folder = tmp_path / "inbox"
    folder.mkdir(mode=0o700)
    with socket.socket(socket.AF_UNIX) as inbox:
        inbox.bind(str(folder / "s"))
        claude.register(messagingSocketPath=str(folder / "s"))
        async with open_bridge(tmp_path) as bridge:
            key = process.key_of(claude.facts)
            record = replace(BOB, session_id=SessionId(SESSION), process_key=key)
            queue = bridge.new_queue(record)
            assert await finding.find(bridge, queue) is not None

            queue.record = replace(record, wants=("desktop+unix:///run/x.sock",))
            assert await finding.find(bridge, queue) is None

            queue.record = replace(record, wants=(claude.wish().native_remote,))
            assert await finding.find(bridge, queue) is not None


async def test_an_attached_chat_gains_its_native_way_and_an_offline_one_never(
    tmp_path: Path, claude: Claude
) -> None:
    folder = tmp_path / "inbox"
    folder.mkdir(mode=0o700)
    claude.register(messagingSocketPath="")
    with socket.socket(socket.AF_UNIX) as inbox:
        async with open_bridge(tmp_path) as bridge:
            key = process.key_of(claude.facts)
            record = replace(BOB, session_id=SessionId(SESSION), process_key=key)
            await bridge.commit([SaveAttachment(record)])
            queue = bridge.new_queue(record)
            bridge.roster.add(queue)
            await natives.look(bridge, queue)
            assert queue.record.native_route == ""

            inbox.bind(str(folder / "s"))
            claude.register(messagingSocketPath=str(folder / "s"))
            await natives.look(bridge, queue)
            assert queue.record.native_route == f"claude+session://{claude.file}"

            await stepping.step(bridge, queue, ProcessGone(bridge.clock.wall()))
            await natives.look(bridge, queue)
            assert queue.record.native_route == ""


# ---- a chat whose hooks were heard -------------------------------------------------

STARTED = {"hook_event_name": "SessionStart", "source": "startup", "cwd": "/srv/shop"}


async def until_heard(bridge: Bridge) -> None:
    await wait_until(lambda: bridge.hooked, "a hook", 5)


async def test_a_chat_whose_hooks_were_heard_can_be_chosen(
    tmp_path: Path, codex: Codex
) -> None:
    async with open_bridge(tmp_path) as bridge:
        await say(bridge, codex, STARTED)
        await until_heard(bridge)

        (found,) = [
            each for each in await chats.live(bridge) if each.provider != "claude"
        ]
        wish = Attach(provider="codex", session_id=found.session_id)
        chosen = await chats.chosen(bridge, wish)

        assert (found.provider, found.folder) == ("codex", "/srv/shop")
        assert found.session_id == BOB.session_id
        assert chosen.key.pid == codex.pid


async def test_a_process_that_is_gone_has_no_chat_to_choose(
    tmp_path: Path, codex: Codex
) -> None:
    async with open_bridge(tmp_path) as bridge:
        await say(bridge, codex, STARTED)
        await until_heard(bridge)
        ((key, session_id),) = bridge.hooked
        bridge.hooked = {(replace(key, start=key.start + 1), session_id)}

        found = await chats.live(bridge)

        assert session_id not in [each.session_id for each in found]
