"""Playing a script from its first event to a fair end, and writing it down.

A fair end: faults are over, the chat is attached, its turns end and its hooks
print what they are given. Then everything has had its chance.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

import trio
import trio.testing

from tests.faults.whole import events as happens
from tests.faults.whole import host
from tests.faults.whole.events import Event
from tests.faults.whole.host import Codex
from tests.faults.whole.story import Story

# Nothing here depends on what a power cut leaves, so no disk has to be waited for.
_FAST = "/dev/shm" if Path("/dev/shm").is_dir() else None
# Longer than the longest pause before a stream or a sender tries again.
_FAIR_S = 61.0
_NAMED_AFTER_S = 601.0
_TRIES = 5
_TURNS = 60
# A continuation shows only news; the turn after it shows the rest.
_QUIET_TURNS = 3


def play(script: Sequence[Event], codex: Codex) -> None:
    """The whole story; a broken promise is raised with the script beside it."""
    clock = trio.testing.MockClock()
    trio._core._run._r.seed(0)
    try:
        trio.run(_play, script, codex, clock, clock=clock)
    except BaseException as error:
        found: BaseException = error
        while isinstance(found, BaseExceptionGroup) and len(found.exceptions) == 1:
            found = found.exceptions[0]
        found.add_note(f"The script, for kept_scripts.py:\n{happens.written(script)}")
        raise found from None


async def _play(
    script: Sequence[Event], codex: Codex, clock: trio.testing.MockClock
) -> None:
    with tempfile.TemporaryDirectory(dir=_FAST) as folder:
        story = Story(Path(folder), codex, clock)
        async with trio.open_nursery() as nursery:
            story.nursery = nursery
            nursery.start_soon(story.server.beat)
            try:
                await story.begin()
                await story.play([happens.Attach()])
                await story.play(script)
                await _end_fairly(story)
            finally:
                # What is shielded needs its time, which only passes here.
                story.life.die()
                await story.end()
            nursery.cancel_scope.cancel()


async def _end_fairly(story: Story) -> None:
    _mend(story)
    await story.play([happens.WayGone()])
    for _ in range(len(story.chats)):
        await story.play([happens.Say()])
    await _attach(story)
    await _hear_all(story)
    story.letters.nothing_is_lost()
    try:
        _nothing_is_lost(story)
    except AssertionError:
        # An offer that the host dropped unseen is known as such only by silence.
        await story.play([happens.Pass(_NAMED_AFTER_S)])
        await _hear_all(story)
        _nothing_is_lost(story)
    _receipts_have_arrived(story)


def _mend(story: Story) -> None:
    story.server.faults.clear()
    story.server.send_faults.clear()
    story.server.rewinds = 0
    story.disk.delay_s = 0.0
    story.disk.full_for = 0
    story.disk.last_commit = None


async def _attach(story: Story) -> None:
    """Until the name is attached here and its stream is open."""
    for _ in range(_TRIES):
        story.server.cut()
        await story.play([happens.Pass(_FAIR_S)])
        queue = story.life.present()
        if queue is not None and queue.is_live and story.server.streams:
            return
        await story.play([happens.Attach()])
    raise AssertionError(f"it cannot be attached:\n{story.life.log.getvalue()}")


async def _hear_all(story: Story) -> None:
    """End turns until there is nothing more to say."""
    queue = story.life.present()
    assert queue is not None
    session = host.SESSIONS.index(queue.record.session_id)
    quiet = 0
    for _ in range(_TURNS):
        await story.play([happens.Pass(3.0), happens.TurnEnd(session)])
        has_offer = any(hook.holds_offer for hook in story.hooks)
        await story.play([happens.Say()])
        quiet = 0 if has_offer else quiet + 1
        if quiet == _QUIET_TURNS:
            return
    raise AssertionError("its hooks never end to offer")


def _nothing_is_lost(story: Story) -> None:
    elsewhere = {mail.id for mail in story.server.mail if mail.observed == "elsewhere"}
    excused = story.server.passed_over | elsewhere | story.perhaps_named()
    story.oracle.nothing_is_lost([mail.id for mail in story.server.mail], excused)


def _receipts_have_arrived(story: Story) -> None:
    """What the agent was told is kept has reached the server."""
    had = set(story.server.receipts)
    for message, said in story.oracle.answered.items():
        missing = {delivery for delivery in said if (message, delivery) not in had}
        assert not missing, f"the receipts {missing} of {message} are lost"
