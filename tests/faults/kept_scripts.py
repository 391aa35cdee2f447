"""Scripts that once broke a promise, kept as they were printed; and a few walks.

Each is played by test_whole_system.py or test_whole_outbox.py as a test of its
own. A new one is pasted from what a failing machine prints, under a name that
says what must hold.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tests.faults.whole.events import (
    Ack,
    Again,
    Attach,
    Away,
    Crash,
    CrashAtCommit,
    Cut,
    Detach,
    Event,
    Fault,
    FullDisk,
    Luck,
    Pass,
    Post,
    Prompt,
    Read,
    Replace,
    Restart,
    Retract,
    Rewind,
    Say,
    Send,
    SendFault,
    ServerRestart,
    SessionEnd,
    Silence,
    SlowDisk,
    Swap,
    TurnEnd,
    WayFound,
    WaySays,
)

Scripts = Mapping[str, Sequence[Event]]

SYSTEM: Scripts = {
    "what a detach could not tell the server is told by the next session": (
        Post(is_large=True),
        Fault("broken", 4),
        TurnEnd(),
        Detach(),
        Replace(shows=False),
    ),
    "what a native way may have handed over is not handed over again": (
        WayFound(),
        Post(),
        WaySays("", is_seen=False),
        Post(),
        WaySays("unprinted"),
        WayFound(),
        TurnEnd(),
        Say(),
    ),
    "a message is shown once, whatever crashes around it": (
        Post(),
        TurnEnd(),
        Crash(),
        Say(),
        Crash(),
        TurnEnd(),
        Say(),
    ),
    "an offer that dies at its own commit is named, not repeated": (
        Post(),
        CrashAtCommit(1),
        TurnEnd(),
        TurnEnd(),
        Say(),
    ),
    "what an old session left unsure is named by the next": (
        Post(),
        TurnEnd(vanishes=True),
        Replace(),
    ),
    "an offer that is out while the name moves is named by the next": (
        Post(),
        TurnEnd(),
        Attach(session=1),
        Say("", is_seen=False),
    ),
    "what an old chat was offered is not taken while the server is told of it": (
        Post(is_large=True),
        TurnEnd(),
        Detach(),
        Fault("broken"),
        Say("", is_seen=False),
        Attach(session=1),
        Fault("busy", 2),
        SlowDisk(1.0),
    ),
    "a stream that begins anew shows nothing twice": (
        Post(),
        TurnEnd(),
        Say(),
        Swap(),
        Rewind(),
        Cut(is_half=True),
        Pass(31.0),
        Again(0, is_changed=True),
        TurnEnd(),
        Say(),
    ),
    "a retraction that meets an offer on its way lets it be": (
        Post(),
        TurnEnd(),
        Retract(0),
        Say("unprinted"),
    ),
    "a disk without room loses no message": (
        Post(),
        TurnEnd(),
        FullDisk(2),
        Say(),
        Post(),
        Pass(61.0),
        Ack(0, "processed"),
    ),
    "mail that came while everything was away is shown": (
        Post(),
        Away(1),
        Silence(),
        Post(),
        Fault("garbage", 3),
        Restart(),
        Prompt(),
        Read(),
        SessionEnd(),
        ServerRestart(),
        Luck(3),
    ),
}

OUTBOX: Scripts = {
    "a lost reply is asked for again": (
        SendFault("lost"),
        Send(),
    ),
    "what is said while the name moves goes out under the new lease": (
        Send(number=0, text=1),
        SendFault("busy"),
        Send(number=4),
        Send(number=3),
        SendFault("slow"),
        SlowDisk(1.0),
        Pass(8.0),
        Cut(),
        CrashAtCommit(5),
        Attach(session=1),
        Send(number=5, target=1),
        Send(number=2, target=1),
    ),
    "a session that is being detached takes nothing": (
        SlowDisk(0.2),
        Detach(),
        Send(),
    ),
    "a detach lists what waits, however slow the disk is": (
        SendFault("unreachable"),
        Send(),
        SlowDisk(6.0),
        Detach(),
    ),
    "a submission that the disk had no room for keeps its place": (
        FullDisk(2),
        Send(number=4),
        Send(number=6, target=1),
        Send(number=3, text=1),
        Send(number=4),
    ),
    "an id that was used stays known when its lease has ended": (
        Send(number=2),
        CrashAtCommit(2),
        Replace(),
        Attach(session=1),
        Cut(),
        Send(number=2, target=1),
    ),
    "a crash between save and answer sends the same id again": (
        CrashAtCommit(2),
        SendFault("slow"),
        Send(),
        Pass(3.0),
        Send(),
    ),
}
