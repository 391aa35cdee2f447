"""A story: one life after the other on one disk, beside a server and a host.

Owns virtual time, and what every event does. After each, nothing can run any more.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import singledispatchmethod
from pathlib import Path
from typing import Any

import trio
import trio.testing

from bridge.driver import attaching, verbs
from bridge.driver.bridge import Bridge
from bridge.errors import BridgeError, StorageBroken
from tests.fakes.clock import FakeClock
from tests.faults.whole import events as happens
from tests.faults.whole import host, server
from tests.faults.whole.disk import NAME, Disk
from tests.faults.whole.events import Event
from tests.faults.whole.host import Chat, Codex, HookRun
from tests.faults.whole.letters import Letter, LetterOracle
from tests.faults.whole.life import Life, to_next_deadline_s
from tests.faults.whole.looking import OnDisk, read_disk
from tests.faults.whole.oracle import OUT, MailOracle
from tests.faults.whole.way import Ways

DAY_S = 24 * 3600.0
# What was dealt with is forgotten after that, named or not.
_KEPT_DAYS = 7
# Longer than anything of a ghost waits under a shield.
_UNWINDING_S = 120.0


class Story:
    """See the module. `after_each` looks at the disk, when nothing is under way."""

    def __init__(
        self, folder: Path, codex: Codex, clock: trio.testing.MockClock
    ) -> None:
        self.folder = folder
        self.codex = codex
        self.key = host.key_of(codex)
        self.time = clock
        self.clock = FakeClock()
        self.disk = Disk()
        self.server = server.MessageServer(self.clock)
        self.oracle = MailOracle()
        self.letters = LetterOracle(self.server)
        self.server.on_receipt = lambda message, delivery: self._witness(
            lambda: self.oracle.receipt(message, delivery)
        )
        self.server.on_lease_end = self.oracle.ended_leases.add
        self.chats = [Chat(session) for session in host.SESSIONS]
        self.hooks: list[HookRun] = []
        self.ways = Ways(self)
        self.broken: AssertionError | None = None
        self.lives = 0
        self.life: Life
        self.nursery: trio.Nursery

    # ---- time --------------------------------------------------------------------

    async def settle(self) -> None:
        """Until nothing can run without more time."""
        await trio.testing.wait_all_tasks_blocked()

    async def pass_time(self, seconds: float) -> None:
        """From deadline to deadline, each settled before the next."""
        left = seconds
        await self.settle()
        while left > 1e-9:
            step = min(left, to_next_deadline_s())
            self.time.jump(step)
            self.clock.advance(step)
            left -= step
            await self.settle()

    # ---- lives -------------------------------------------------------------------

    def _folder(self, number: int) -> Path:
        return self.folder / f"life-{number}"

    async def begin(self) -> None:
        """Start a daemon; one that dies while it starts is started again."""
        self._folder(1).mkdir(mode=0o700, exist_ok=True)
        while True:
            self.lives += 1
            self.life = Life(
                self._folder(self.lives),
                self._folder(self.lives + 1),
                self.folder / "leases",
                self.disk,
                self.codex.hook_pid,
            )
            self.nursery.start_soon(self.life.run, self.server, self.clock)
            await self._until(lambda: self.life.is_serving or self.life.is_over)
            if self.life.is_serving:
                return
            self.disk.full_for = 0  # the person made room

    async def end(self) -> None:
        """Until the life that was told to end, or that died, is over."""
        await self._until(lambda: self.life.is_over)

    async def _until(self, holds: object) -> None:
        assert callable(holds)
        waited = 0.0
        await self.settle()
        while not holds():
            step = min(to_next_deadline_s(), 1.0)
            assert waited < _UNWINDING_S, f"it hangs:\n{self.life.log.getvalue()}"
            await self.pass_time(step)
            waited += step

    async def again_if_dead(self) -> None:
        """Whoever supervises it starts it again."""
        if self.life.is_dead:
            await self.end()
            await self.begin()

    # ---- looking -----------------------------------------------------------------

    def on_disk(self) -> OnDisk:
        """What is durable now, read beside the daemon."""
        number = self.lives + (1 if self.life.is_dead else 0)
        return read_disk(self._folder(number) / NAME)

    def perhaps_named(self) -> set[str]:
        """Named in an offer that may have been lost on its way: once, and no more."""
        is_lost = self.ways.were_there or any(hook.is_lost for hook in self.hooks)
        has_lost_offers = self.lives > 1 or is_lost
        rows = self.on_disk().rows if has_lost_offers else []
        return {row.message for row in rows if row.named}

    def look(self) -> None:
        """The promises that hold after every step."""
        found = self.on_disk()
        self.oracle.look(found.rows, found.watermarks)
        self.letters.look(found.submissions)

    def note_print(self, hook: HookRun) -> None:
        """A hook has a whole print in its hands, as it comes out of the pipe."""
        self.note_parcel(hook.text)

    def note_parcel(self, text: str) -> None:
        """An offer is in the hands of a hook or a native way."""
        rows = sorted(self.on_disk().rows, key=lambda row: row.state in OUT)
        self.letters.is_told(host.refused_in(text))
        disk = {row.message: row for row in rows}
        shown, named = host.shown_in(text), host.named_in(text)
        self._witness(lambda: self.oracle.print(shown, named, disk))

    def witness(self, holds: bool, what: str) -> None:
        """Inside of a task: what must hold."""
        if not holds:
            self.broken = self.broken or AssertionError(what)

    def _witness(self, look: Callable[[], None]) -> None:
        """Inside of a task; what it finds broken is raised by the story itself."""
        try:
            look()
        except AssertionError as error:
            self.broken = self.broken or error

    def _raise_broken(self) -> None:
        if self.broken is not None:
            raise self.broken
        if self.life.bug is not None:
            raise self.life.bug

    # ---- playing -----------------------------------------------------------------

    async def play(self, script: Sequence[Event]) -> None:
        """Each event, settled and looked at."""
        for event in script:
            await self.happen(event)
            await self.settle()
            self._raise_broken()
            await self.again_if_dead()
            self._raise_broken()
            self.look()

    @singledispatchmethod
    async def happen(self, event: Event) -> None:
        """Carry out one event."""
        raise TypeError(f"nothing does {event}")

    @happen.register
    async def _(self, event: happens.Crash) -> None:
        self.life.die()

    @happen.register
    async def _(self, event: happens.CrashAtCommit) -> None:
        self.disk.last_commit = event.number

    @happen.register
    async def _(self, event: happens.Restart) -> None:
        self.life.stop()
        await self.end()
        await self.begin()

    @happen.register
    async def _(self, event: happens.Away) -> None:
        self.life.die()
        await self.end()
        if event.days >= _KEPT_DAYS:
            self.oracle.ages()
        self.server.cut()
        await self.pass_time(event.days * DAY_S)
        await self.begin()

    @happen.register
    async def _(self, event: happens.Pass) -> None:
        await self.pass_time(event.seconds)

    @happen.register
    async def _(self, event: happens.SlowDisk) -> None:
        self.disk.delay_s = event.seconds

    @happen.register
    async def _(self, event: happens.FullDisk) -> None:
        self.disk.full_for = event.commits

    @happen.register
    async def _(self, event: happens.Luck) -> None:
        trio._core._run._r.seed(event.seed)

    # ---- the server and the way to it

    @happen.register
    async def _(self, event: happens.Post) -> None:
        self.server.post("long " * server.LARGE if event.is_large else "Hello.")
        self.server.pump()

    @happen.register
    async def _(self, event: happens.Swap) -> None:
        first, second = self.server.post("First."), self.server.post("Second.")
        for stream in self.server.streams:
            self.server.bring(stream, second)
            self.server.bring(stream, first)

    @happen.register
    async def _(self, event: happens.Again) -> None:
        if self.server.mail:
            mail = self.server.mail[event.message % len(self.server.mail)]
            for stream in self.server.streams:
                changed = "Something else." if event.is_changed else None
                self.server.bring(stream, mail, changed)

    @happen.register
    async def _(self, event: happens.Retract) -> None:
        if self.server.mail:
            mail = self.server.mail[event.message % len(self.server.mail)]
            self.server.retract(mail)
            if mail.is_retracted:
                self.oracle.retracted.add(mail.id)

    @happen.register
    async def _(self, event: happens.Cut) -> None:
        self.server.cut(event.is_half)

    @happen.register(happens.ServerRestart)
    async def _(self, _: Event) -> None:
        self.server.cut()

    @happen.register
    async def _(self, event: happens.Silence) -> None:
        for stream in self.server.streams:
            stream.is_silent = True

    @happen.register
    async def _(self, event: happens.Rewind) -> None:
        self.server.rewinds = event.streams

    @happen.register
    async def _(self, event: happens.Fault) -> None:
        self.server.faults.extend([event.kind] * event.requests)

    @happen.register
    async def _(self, event: happens.SendFault) -> None:
        self.server.send_faults.append(event.kind)

    @happen.register
    async def _(self, event: happens.Replace) -> None:
        self.server.replace(shows=event.shows)

    # ---- the person, the host and the agent

    @happen.register
    async def _(self, event: happens.Attach) -> None:
        session = host.SESSIONS[event.session % len(host.SESSIONS)]
        wish = attaching.Wish("codex", session, self.key, name="bob", by_hook=True)
        self.call(lambda bridge: attaching.attach(bridge, wish))

    @happen.register
    async def _(self, event: happens.Detach) -> None:
        queue = self.life.present()
        if queue is not None:
            lease = queue.record.attachment_id
            is_over = lease != self.server.lease
            arrived = set(self.server.receipts) if is_over else None
            self.oracle.is_detached(lease, arrived)
            self.letters.is_detached()
            self.call(
                lambda bridge: attaching.detach(bridge, queue), self.letters.is_told
            )

    @happen.register
    async def _(self, event: happens.SessionEnd) -> None:
        chat = self.chats[event.session % len(self.chats)]
        await self._hook(chat, "SessionEnd", chat.end())
        chat.goes_on = False

    @happen.register
    async def _(self, event: happens.Prompt) -> None:
        chat = self.chats[event.session % len(self.chats)]
        await self._hook(chat, "UserPromptSubmit", chat.prompt())

    @happen.register
    async def _(self, event: happens.TurnEnd) -> None:
        chat = self.chats[event.session % len(self.chats)]
        if not any(hook.chat is chat and hook.holds_offer for hook in self.hooks):
            await self._hook(chat, "Stop", chat.turn_end(), vanishes=event.vanishes)

    async def _hook(
        self, chat: Chat, name: str, stdin: bytes, *, vanishes: bool = False
    ) -> None:
        hook = HookRun(self.life, chat, name, stdin, self.note_print, vanishes=vanishes)
        self.hooks.append(hook)
        self.nursery.start_soon(hook.run)

    @happen.register
    async def _(self, event: happens.Say) -> None:
        held = [hook for hook in self.hooks if hook.holds_offer]
        if held:
            is_seen = event.is_seen and event.word != "unprinted"
            text = held[0].text
            self.oracle.word(
                host.shown_in(text), host.named_in(text), event.word, is_seen=is_seen
            )
            await held[0].end(event.word, is_seen=is_seen)

    @happen.register(happens.WayFound)
    async def _(self, _: Event) -> None:
        self.ways.found()

    @happen.register
    async def _(self, event: happens.WaySays) -> None:
        self.ways.say(event.word, is_seen=event.is_seen)

    @happen.register(happens.WayGone)
    async def _(self, _: Event) -> None:
        self.ways.gone()

    @happen.register
    async def _(self, event: happens.Ack) -> None:
        queue = self.life.present()
        if queue is None or not self.server.mail:
            return
        mail = self.server.mail[event.message % len(self.server.mail)]
        delivery = event.delivery
        self.oracle.says(mail.id, delivery)
        self.call(
            lambda bridge: verbs.ack(bridge, queue, mail.id, delivery),
            lambda answer: self.oracle.is_answered(mail.id, delivery),
        )

    @happen.register
    async def _(self, event: happens.Read) -> None:
        queue = self.life.present()
        if queue is not None:
            self.call(
                lambda bridge: verbs.read(bridge, queue),
                lambda answer: self.oracle.is_read(answer["messages"]),
            )

    @happen.register
    async def _(self, event: happens.Send) -> None:
        queue = self.life.present()
        if queue is None:
            return
        letter = Letter(event.number, event.target, event.text)
        self.letters.is_tried(letter)
        self.call(
            lambda bridge: verbs.send(
                bridge, queue, letter.target, letter.body, letter.submission_id
            ),
            lambda answer: self.letters.is_answered(letter, answer),
            lambda error: self.letters.is_refused(letter, error),
        )

    def call(
        self,
        work: Callable[[Bridge], Awaitable[Any]],
        then: Callable[[Any], object] = lambda _: None,
        otherwise: Callable[[BridgeError], object] = lambda _: None,
    ) -> None:
        """A local program asks; its answer counts if the daemon lives to give it."""
        life = self.life
        if not life.is_serving or life.bridge is None or life.callers is None:
            return
        bridge = life.bridge

        async def run() -> None:
            try:
                answer = await work(bridge)
            except BridgeError as error:
                if isinstance(error, StorageBroken):
                    raise
                if not life.is_dead:
                    otherwise(error)
            else:
                if not life.is_dead:
                    then(answer)

        life.callers.start_soon(run)
