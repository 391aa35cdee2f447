"""One attached script of a soak: it talks, ends turns, acknowledges, takes notes.

    python worker.py

Says its pid on the first line, then does what each line on stdin asks and answers
with one line, as the puppet of the journeys does. Its life runs beside that, from
`begin` on, and all that it did and was told is in its notes, a line of JSON each.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bridge.clock import SystemClock
from tests.soak import door
from tests.soak.dice import Dice
from tests.soak.hooks import Hooks
from tests.soak.offers import Shown

TRY_AGAIN = 75  # the exit code of an error that may pass
_AGAIN_S = 0.3
_CALMER = 4.0  # while it settles, a turn ends about every second
_MOST_UNDECIDED = 12
_ACTS = {"send": 45.0, "reply": 20.0, "turn": 30.0, "repeat": 3.0, "forge": 2.0}
_LONG = {"short": 88.0, "page": 8.0, "long": 3.0, "largest": 1.0}
_LENGTHS = {"short": 80, "page": 2_000, "long": 9_000, "largest": 19_500}


class Notes:
    """What one script did and saw, on disk before it goes on."""

    def __init__(self, path: Path, name: str) -> None:
        self._file = path.open("a", encoding="utf-8")
        self._name = name
        self._clock = SystemClock()

    def now(self) -> float:
        """Seconds on the clock that all processes share."""
        return self._clock.running()

    def write(self, what: str, **said: object) -> None:
        """One line."""
        line = {"what": what, "agent": self._name, "at": self.now(), **said}
        self._file.write(json.dumps(line) + "\n")
        self._file.flush()


class Life:
    """See the module. `acks` is none, admitted, processed or both."""

    def __init__(
        self,
        state: str,
        notes: str,
        name: str,
        seed: str,
        peers: list[str],
        acks: str,
        pace_s: float,
    ) -> None:
        self.peers = peers
        self.phase = "work"
        self.last_print_at = 0.0
        self._name = name
        self._acks = {"none": [], "both": ["admitted", "processed"]}.get(acks, [acks])
        self._pace_s = pace_s
        self._dice = Dice(seed, name)
        self._notes = Notes(Path(notes), name)
        self._hooks = Hooks(Path(state), self._dice, self._notes)
        self._undecided: deque[dict[str, Any]] = deque()
        self._receipts: deque[tuple[str, str]] = deque()
        self._heard: deque[Shown] = deque(maxlen=20)
        self._said: deque[dict[str, Any]] = deque(maxlen=20)
        self._count = 0
        self._pause = threading.Event()

    @property
    def open_ends(self) -> int:
        """Calls of which nobody knows yet whether they were heard."""
        return len(self._undecided) + len(self._receipts)

    def live(self) -> None:
        """Until the process ends."""
        while True:
            calm = 1.0 if self.phase == "work" else _CALMER
            self._pause.wait(calm * self._pace_s * self._dice.between(0.3, 1.7))
            if self.phase == "work":
                self._act()
            elif self.phase == "settle":
                self._settle()

    def _act(self) -> None:
        act = self._dice.weighted(_ACTS)
        if self._undecided and (
            len(self._undecided) >= _MOST_UNDECIDED or self._dice.happens(0.3)
        ):
            self._ask_again()
        elif act == "turn":
            self._turn(self._dice.weighted(self._hooks.KINDS))
        elif act == "forge":
            self._hooks.forge(self._dice.one_of(self.peers))
        elif act == "repeat" and self._said:
            self._send(self._dice.one_of(list(self._said)))
        elif act == "reply" and self._heard:
            self._send(self._reply(self._dice.one_of(list(self._heard))))
        else:
            self._send(self._message())
        self._acknowledge()

    def _settle(self) -> None:
        """No new words: what is open is decided, and turns end."""
        self._ask_again()
        self._acknowledge()
        self._turn("plain")

    # ---- sending -------------------------------------------------------------------

    def _message(self) -> dict[str, Any]:
        target = f"agent:{self._dice.one_of(self.peers)}"
        return {"verb": "session_send", "target": target, **self._words()}

    def _reply(self, to: Shown) -> dict[str, Any]:
        by_inbox = self._dice.happens(0.3)
        where = {"inbox_id": to.inbox_id} if by_inbox else {"message_id": to.message_id}
        return {"verb": "session_reply", **where, **self._words()}

    def _words(self) -> dict[str, Any]:
        self._count += 1
        submission_id = f"{self._name}-{os.getpid()}-{self._count:05d}"
        length = _LENGTHS[self._dice.weighted(_LONG)]
        body = f"{submission_id} {self._dice.letters(length)} {submission_id}"
        return {"provider": "script", "message": body, "submission_id": submission_id}

    def _send(self, said: dict[str, Any]) -> None:
        """Ask once; what nobody answered is asked again later, with the same id."""
        self._notes.write("sending", id=said["submission_id"])
        answer = self._answer(said)
        ok = answer.get("ok", {})
        self._notes.write(
            "send",
            id=said["submission_id"],
            to=said.get("target", said.get("inbox_id", said.get("message_id"))),
            answer=ok.get("status") or answer["error"]["code"],
            may_be_kept="ok" in answer or answer["error"]["exit"] == TRY_AGAIN,
            message_id=ok.get("message_id", ""),
        )
        if "error" in answer and answer["error"]["exit"] == TRY_AGAIN:
            self._undecided.append(said)
            self._pause.wait(_AGAIN_S)
        elif ok and said not in self._said:
            self._said.append(said)

    def _ask_again(self) -> None:
        if self._undecided:
            self._send(self._undecided.popleft())

    # ---- turns and receipts ----------------------------------------------------------

    def _turn(self, kind: str) -> None:
        offer = self._hooks.end_turn(kind)
        if offer is None:
            return
        self.last_print_at = self._notes.now()
        self._heard.extend(offer.shown)
        ids = [each.message_id for each in offer.shown]
        # What may not have arrived is looked up by a few, and then proved.
        ids += [each for each in offer.unsure if self._dice.happens(0.3)]
        self._receipts += [(id_, delivery) for id_ in ids for delivery in self._acks]

    def _acknowledge(self) -> None:
        for _ in range(len(self._receipts)):
            message_id, delivery = self._receipts.popleft()
            said = {"message_id": message_id, "delivery": delivery}
            self._notes.write("acking", **said)
            asked = {"verb": "session_ack", "provider": "script", **said}
            answer = self._answer(asked)
            told = answer.get("ok", {}).get("delivery") or answer["error"]["code"]
            self._notes.write("ack", **said, answer=told)
            if "error" in answer and answer["error"]["exit"] == TRY_AGAIN:
                self._receipts.appendleft((message_id, delivery))
                return

    def _answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """Never without an answer: silence is an error that may pass."""
        try:
            return door.call(request)
        except door.Unanswered as error:
            return {
                "error": {"code": "unanswered", "exit": TRY_AGAIN, "why": str(error)}
            }


class Script:
    """What the one who started us may ask."""

    def __init__(self) -> None:
        self._life: Life | None = None

    def begin(self, **said: Any) -> bool:
        """Start to live."""
        door.enter(Path(said["state"]))
        self._life = Life(**said)
        threading.Thread(target=self._life.live, daemon=True).start()
        return True

    def phase(self, name: str, peers: list[str]) -> bool:
        """From now on: work, settle or rest; and whom to write to."""
        assert self._life is not None
        self._life.phase = name
        self._life.peers = peers or self._life.peers
        return True

    def report(self) -> dict[str, float]:
        """How far it is."""
        assert self._life is not None
        return {
            "open_ends": self._life.open_ends,
            "last_print_at": self._life.last_print_at,
        }


def say(answer: dict[str, Any]) -> None:
    """One line to whoever started us."""
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


def main() -> None:
    """Serve stdin until it ends."""
    threading.stack_size(256 * 1024)
    script = Script()
    actions: dict[str, Callable[..., Any]] = {
        "begin": script.begin,
        "phase": script.phase,
        "report": script.report,
    }
    say({"ok": os.getpid()})
    for line in sys.stdin:
        asked = json.loads(line)
        say({"ok": actions[asked.pop("do")](**asked)})


if __name__ == "__main__":
    main()
