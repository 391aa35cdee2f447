"""The parts that every room of the driver shares; it decides nothing.

Owns what is remembered of the whole bridge: the roster, which session a one-chat
process is in, whose hooks were heard and from which folder, what the person was told
last, and the last verb that only the person may use.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeVarTuple

import trio

from bridge.clock import Clock, rfc3339
from bridge.core import quota, texts
from bridge.core.effects import Save
from bridge.core.records import Attachment, ProcessKey, Submission, Want
from bridge.driver.link import Link
from bridge.driver.queue import AttachmentQueue
from bridge.driver.roster import Roster
from bridge.driver.trial import Trial
from bridge.driver.twins import Twins
from bridge.errors import (
    BridgeError,
    StorageBroken,
    StorageFull,
    Unavailable,
    single_error,
)
from bridge.log import Log
from bridge.paths import Paths
from bridge.routes.agy_agentapi import Access
from bridge.routes.claude_channel import Channel
from bridge.routes.notification import Desktop
from bridge.routes.way import Way
from bridge.store.journal import Journal
from bridge.store.leases import Leases

Arguments = TypeVarTuple("Arguments")

# What had no room is tried again this often.
SAVE_AGAIN_S = 30.0
# The newest sentences that the person was told; older ones are in the log.
TOLD_KEPT = 20
_SAVING, _TIDYING = "saving", "tidying"


@dataclass
class Bridge:
    """See the module.

    `nursery` lives as long as the daemon serves; `program` is the command as it
    can be pasted; `stopping` is set by a stop; `attaching` lets one attach at a
    time choose a name; `storage_troubles` holds, by kind of work, the sentence of
    the last try that found no room or another program in the way. `may_wake`: the
    person lets messages start turns; `desktop` shows them notifications, None for a
    person who wants none, and `lacks_desktop` is that it once could not; `trial` is
    the last wake test; `adapters`
    are the extensions of ours that are connected, by provider, session and process,
    and `channels` the MCP children that may push, by their program's process.
    `accesses` are secrets of programs' local
    services, by process and session: in memory alone.
    """

    paths: Paths
    clock: Clock
    journal: Journal
    leases: Leases
    link: Link
    log: Log
    nursery: trio.Nursery
    program: str
    started_at: float
    last_number: int = 0
    limits: quota.Limits = field(default_factory=quota.Limits)
    roster: Roster = field(default_factory=Roster)
    heard: dict[ProcessKey, str] = field(default_factory=dict)
    hooked: set[tuple[ProcessKey, str]] = field(default_factory=set)
    folders: dict[tuple[ProcessKey, str], str] = field(default_factory=dict)
    twins: Twins = field(default_factory=Twins)
    watched: set[ProcessKey] = field(default_factory=set)
    warnings: list[str] = field(default_factory=list)
    storage_troubles: dict[str, str] = field(default_factory=dict)
    last_privileged: str = ""
    told: deque[str] = field(default_factory=lambda: deque(maxlen=TOLD_KEPT))
    stopping: trio.Event = field(default_factory=trio.Event)
    broken: StorageBroken | None = None
    may_wake: bool = True
    desktop: Desktop | None = None
    lacks_desktop: bool = False
    trial: Trial | None = None
    adapters: dict[tuple[str, str, ProcessKey], Way] = field(default_factory=dict)
    channels: dict[ProcessKey, Channel] = field(default_factory=dict)
    accesses: dict[tuple[ProcessKey, str], Access] = field(default_factory=dict)
    attaching: trio.Lock = field(default_factory=trio.Lock)

    def new_queue(self, record: Attachment) -> AttachmentQueue:
        """A queue for a record that the journal does not hold yet."""
        return AttachmentQueue(record, (), (), (), self, self.clock)

    async def commit(self, saves: Sequence[Save]) -> None:
        """The journal's commit; a journal that is broken stops the bridge."""
        try:
            await self.journal.commit(saves)
        except StorageBroken as error:
            self.give_up(error)
            raise
        except (StorageFull, Unavailable) as error:
            self.storage_troubles[_SAVING] = f"When last tried: {error.sentence()}"
            raise
        self.storage_troubles.pop(_SAVING, None)

    async def tidy_journal(self) -> None:
        """Empty the log of what was erased; who keeps it from that is a trouble."""
        try:
            await self.journal.checkpoint()
        except (StorageFull, Unavailable) as error:
            self.storage_troubles[_TIDYING] = f"When last tried: {error.sentence()}"
            raise
        self.storage_troubles.pop(_TIDYING, None)

    def give_up(self, error: StorageBroken) -> None:
        """The journal cannot be trusted: stop, and end with this error."""
        self.broken = self.broken or error
        self.stopping.set()

    def start(
        self,
        work: Callable[[*Arguments], Awaitable[object]],
        *args: *Arguments,
    ) -> None:
        """Run `work` beside everything else; its BridgeError ends it and no more."""
        self.nursery.start_soon(self._run, work, args)

    async def _run(
        self, work: Callable[..., Awaitable[object]], args: tuple[object, ...]
    ) -> None:
        try:
            with single_error():
                await work(*args)
        except StorageBroken as error:
            self.give_up(error)
        except BridgeError as error:
            self.log.error("work_ended", code=error.code, reason=error.message)

    async def until_saved(self, work: Callable[[], Awaitable[object]]) -> None:
        """Do it again until there is room for what it saves: nobody else will."""
        while True:
            try:
                await work()
            except (StorageFull, Unavailable) as error:
                self.log.warning("not_saved", code=error.code)
                await trio.sleep(SAVE_AGAIN_S)
            else:
                return

    def lets_wake(self, queue: AttachmentQueue) -> bool:
        """Does the person let messages start turns in this chat?"""
        return self.may_wake and Want.NO_WAKE not in queue.record.wants

    def forget_chat(self, key: ProcessKey, session_id: str) -> None:
        """This session has ended in this process: its hooks speak no more."""
        self.heard.pop(key, None)
        self.hooked.discard((key, session_id))
        self.folders.pop((key, session_id), None)
        self.accesses.pop((key, session_id), None)

    def forget_process(self, key: ProcessKey) -> None:
        """This process has ended, with every chat in it."""
        self.heard.pop(key, None)
        gone = {chat for chat in self.hooked if chat[0] == key}
        self.hooked -= gone
        for chat in [chat for chat in self.accesses if chat[0] == key]:
            del self.accesses[chat]
        for chat in gone:
            self.folders.pop(chat, None)

    def next_submission_number(self) -> int:
        """The place of a new submission in the order of all of this bridge."""
        self.last_number += 1
        return self.last_number

    def submissions(self) -> Iterator[Submission]:
        """Every kept submission of this bridge."""
        for queue in self.roster:
            yield from queue.submissions.values()

    def tell_person(self, code: str, name: str) -> None:
        """A sentence for the person, by its code: seen in log and status."""
        when = rfc3339(self.clock.wall())
        self.told.append(f"{when} {texts.told_person(code, name)}")
        self.log.warning("person_told", code=code, name=name)

    def note_privileged(self, verb: str, who: str) -> None:
        """A verb that only the person may use was used: seen in log and status."""
        when = rfc3339(self.clock.wall())
        self.last_privileged = f"{verb} at {when} by {who}"
        self.log.info("privileged", verb=verb, who=who)
