"""Letting everything come to rest, within a bounded time.

Owns what rest means: nobody waits for an answer, nothing pending is left for a
living agent, nothing of it is on its way to the server.
"""

from __future__ import annotations

import sqlite3

import trio

from tests.soak.evidence import opened
from tests.soak.world import World

SETTLES_WITHIN_S = 90.0
_STILL_FOR_S = 3.0
_LOOK_EVERY_S = 1.0
_ON_ITS_WAY = """
SELECT 'pending' AS what, a.name FROM delivery d JOIN attachment a USING (attachment_id)
    WHERE a.state = 'attached' AND d.state IN ('pending', 'offering', 'recalled')
UNION ALL
SELECT 'submission', a.name FROM submission s JOIN attachment a USING (attachment_id)
    WHERE a.state = 'attached' AND s.state NOT IN ('accepted', 'refused', 'orphaned')
UNION ALL
SELECT 'receipt', a.name FROM receipt r JOIN attachment a USING (attachment_id)
    WHERE a.state = 'attached' AND r.state = 'unsent'
"""


async def settle(world: World) -> None:
    """Until all is at rest; what is not in time is an accident."""
    await world.mend()
    await world.phase("settle")
    left: list[str] = ["all"]
    with trio.move_on_after(SETTLES_WITHIN_S):
        while left:
            await trio.sleep(_LOOK_EVERY_S)
            left = [*await _open_ends(world), *_on_its_way(world)]
    await world.phase("rest")
    world.accidents += [
        f"not at rest after {SETTLES_WITHIN_S:g} s: {e}" for e in left[:20]
    ]


async def _open_ends(world: World) -> list[str]:
    now = world.clock.running()
    found = []
    for actor in world.living():
        if actor.name in world.detached:
            continue
        said = await actor.process.do("report")
        if said["open_ends"] or now - said["last_print_at"] < _STILL_FOR_S:
            found.append(f"{actor.name} has {said['open_ends']:g} open ends")
    return found


def _on_its_way(world: World) -> list[str]:
    journal = opened(world.computer.paths.journal)
    try:
        rows = journal.execute(_ON_ITS_WAY).fetchall()
        return [f"{row['what']} of {row['name']}" for row in rows]
    except sqlite3.OperationalError as error:
        return [str(error)]
    finally:
        journal.close()
