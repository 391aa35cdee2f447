"""What the demo shows, step by step.

Owns the order of the steps and what each of them must see. Promises that a step
is called passed only for what real processes did and printed, and that the first
one which is not so ends the demo.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any

import trio
from msgspec import Struct

from bridge.cli.demo_stage import READY_S, NotSo, Script, Stage, until
from bridge.errors import BridgeError

STEP_S = 30.0  # on a computer that has a lot else to do; it takes 1 or 2
_LONG_TEXT = 12_000  # characters: more than the slow host's pipe holds


class Step(Struct, frozen=True):
    """One line of the demo: what was to be shown, and what was seen.

    `shown` is a text exactly as an agent sees it.
    """

    title: str
    ok: bool
    seconds: float
    said: str = ""
    shown: str = ""


class Seen(Struct, frozen=True):
    """What a step that passed saw."""

    said: str = ""
    shown: str = ""


class Play:
    """The demo on one stage; its steps are methods, in their order."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._scripts: dict[str, Script] = {}
        self._first: dict[str, Any] = {}
        self._queued = ""
        self._unsure = ""
        self.steps: tuple[tuple[str, Callable[[], Awaitable[Seen]]], ...] = (
            ("A message server and a bridge are up", self._up),
            ("alice and bob are attached", self._attached),
            ("alice sends bob a message", self._sends),
            ("bob's Stop hook prints it", self._prints),
            ("A second Stop prints nothing", self._prints_once),
            ("bob acknowledges: alice's receipt goes on", self._receipts),
            ("bob replies in the same inbox, alice's Stop prints it", self._replies),
            ("The server goes away: alice's next send is queued", self._queues),
            ("The server comes back: it is delivered, once", self._drains),
            ("The bridge is killed (-9) while an offer is out", self._killed),
            ("Nothing is offered twice, the unsure one is named", self._named),
            ("An unattached chat's hook prints nothing", self._unattached),
        )

    # ---- one message -------------------------------------------------------------

    async def _up(self) -> Seen:
        server = await self._stage.start_server()
        bridge = await self._stage.start_bridge()
        return Seen(f"server {server}, bridge {bridge}")

    async def _attached(self) -> Seen:
        await self._attach_together("alice", "bob")
        rows = [self._stage.row(name) for name in ("alice", "bob")]
        states = {row.state for row in rows}
        _expect(states == {"attached"}, f"the agents are {', '.join(states)}")
        return Seen(
            ", ".join(
                f"{row.name} is process {self._scripts[row.name].pid}" for row in rows
            )
        )

    async def _attach_together(self, *names: str) -> None:
        failed: list[NotSo] = []

        async def attach(name: str) -> None:
            try:
                await self._attach(name)
            except NotSo as error:
                failed.append(error)

        async with trio.open_nursery() as nursery:
            for name in names:
                nursery.start_soon(attach, name)
        for error in failed:
            raise error

    async def _attach(self, name: str) -> None:
        script = self._scripts[name] = await self._stage.start_script()
        ran = await self._stage.person(
            *("--json", "attach", name, "--yes"),
            *("--provider", "script", "--native-pid", str(script.pid)),
        )
        ran.document()

    async def _sends(self) -> Seen:
        self._first = await self._send("Shall we look at the parser together?")
        _expect_accepted(self._first)
        receipt = await self._receipt()
        _expect(receipt == "stored", f"alice's receipt is {receipt!r}")
        return Seen(f"{self._first['message_id']}; alice's receipt: {receipt}")

    async def _prints(self) -> Seen:
        text = await self._bobs_mail()
        _expect("Shall we look at the parser" in text, "the message is not in it")
        _expect(self._first["message_id"] in text, "its id is not in it")
        return Seen(shown=text)

    async def _prints_once(self) -> Seen:
        return await self._silent("bob")

    async def _receipts(self) -> Seen:
        seen = []
        for delivery in ("admitted", "processed"):
            await self._ran(
                "bob",
                *("ack", "--message-id", self._first["message_id"]),
                *("--delivery", delivery),
            )
            seen.append(await self._receipt_becomes(delivery))
        return Seen(f"stored, then {seen[0]}, then {seen[1]}")

    async def _replies(self) -> Seen:
        reply = await self._ran(
            "bob",
            *("reply", "--message-id", self._first["message_id"]),
            *("--message", "Yes, after lunch.", "--submission-id", "demo-reply"),
        )
        _expect_accepted(reply)
        same = reply["inbox_id"] == self._first["inbox_id"]
        _expect(same, f"the reply is in {reply['inbox_id']}")
        await self._waiting("alice", 1)
        text = await self._scripts["alice"].stop_hook()
        _expect("Yes, after lunch." in text, "the reply is not in alice's Stop")
        return Seen(f"inbox {reply['inbox_id']}")

    # ---- a server that goes away ---------------------------------------------------

    async def _queues(self) -> Seen:
        await self._stage.stop_server()
        said = await self._send("The server sleeps, this waits.")
        _expect(said.get("status") == "queued", f"the answer was {said}")
        self._queued = str(said.get("submission_id", ""))
        _expect(bool(self._queued), f"no submission id was named: {said}")
        return Seen(f"submission {self._queued}")

    async def _drains(self) -> Seen:
        await self._stage.start_server()
        text = await self._bobs_mail()
        count = text.count("The server sleeps, this waits.")
        _expect(count == 1, f"it is {count} times in bob's Stop")
        await self._silent("bob")
        message_id = await self._message_id({"submission_id": self._queued})
        return Seen(f"{message_id}, from submission {self._queued}")

    # ---- a bridge that is killed ----------------------------------------------------

    async def _killed(self) -> Seen:
        sent = await self._send("A long text. " + "x" * _LONG_TEXT)
        self._unsure = await self._message_id(sent)
        await self._waiting("bob", 1)
        await self._scripts["bob"].begin_stop_hook()
        pid = self._stage.bridge_pid
        await self._stage.kill_bridge()
        text = await self._scripts["bob"].finish_stop_hook()
        _expect(self._unsure in text, "the offer is not in what the hook printed")
        return Seen(f"bridge {pid} ended before it could hear that bob had it")

    async def _named(self) -> Seen:
        await self._stage.start_bridge()
        text = await until(
            lambda: self._next_stop("bob"), "bob's next Stop names it", READY_S
        )
        _expect("xxxx" not in text, "the text was offered again")
        named = f"{self._unsure} may not have reached you"
        _expect(text.count(named) == 1, "the unsure message is not named")
        await self._silent("bob")
        return Seen(f"{self._unsure} is named, its text is not repeated")

    async def _unattached(self) -> Seen:
        self._scripts["carol"] = await self._stage.start_script()
        return await self._silent("carol")

    # ---- what the steps share -----------------------------------------------------

    async def _ran(self, name: str, verb: str, *words: str) -> dict[str, Any]:
        """`agentworks bridge message VERB …` below this script."""
        command = ("--json", "bridge", "message", verb, "--provider", "script")
        ran = await self._scripts[name].run(*command, *words)
        return ran.document()

    async def _send(self, text: str) -> dict[str, Any]:
        words = ("--target", "agent:bob", "--message", text)
        return await self._ran("alice", "send", *words)

    async def _message_id(self, sent: dict[str, Any]) -> str:
        """The server's id; a bridge that still reconnects names it a bit later."""

        async def asked() -> str | None:
            known = await self._ran("alice", "status", sent["submission_id"])
            return str(known.get("message_id", "")) or None

        if "message_id" in sent:
            return str(sent["message_id"])
        return await until(asked, f"{sent['submission_id']} is accepted", READY_S)

    async def _receipt(self) -> str:
        status = await self._ran("alice", "status", self._first["message_id"])
        return str(status["delivery"])

    async def _receipt_becomes(self, wanted: str) -> str:
        async def asked() -> str | None:
            return wanted if await self._receipt() == wanted else None

        return await until(asked, f"alice's receipt is {wanted}", READY_S)

    async def _waiting(self, name: str, count: int) -> None:
        """Until so many messages are in the bridge's journal for this name."""

        async def asked() -> bool | None:
            return True if self._stage.row(name).pending == count else None

        await until(asked, f"{count} waiting for {name}", READY_S)

    async def _bobs_mail(self) -> str:
        await self._waiting("bob", 1)
        return await self._scripts["bob"].stop_hook()

    async def _next_stop(self, name: str) -> str | None:
        return await self._scripts[name].stop_hook() or None

    async def _silent(self, name: str) -> Seen:
        text = await self._scripts[name].stop_hook()
        _expect(not text, f"{name}'s Stop printed {text[:200]!r}")
        return Seen("exit 0, nothing printed")


async def perform(stage: Stage) -> AsyncGenerator[Step, None]:
    """Every step in order; the first that fails is the last."""
    for title, act in Play(stage).steps:
        began = stage.clock.running()
        ok, seen = True, Seen()
        try:
            with trio.fail_after(STEP_S):
                seen = await act()
        except (NotSo, BridgeError, OSError) as error:
            ok, seen = False, Seen(str(error))
        except trio.TooSlowError:
            ok, seen = False, Seen(f"it was not done within {STEP_S:g} s")
        took = stage.clock.running() - began
        yield Step(title, ok, round(took, 2), seen.said, seen.shown)
        if not ok:
            return


def _expect(is_so: bool, otherwise: str) -> None:
    if not is_so:
        raise NotSo(otherwise)


def _expect_accepted(answer: dict[str, Any]) -> None:
    _expect(answer.get("status") == "accepted", f"the answer was {answer}")
