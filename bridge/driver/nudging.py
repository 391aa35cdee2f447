"""A chat in a terminal pane is told to read its mailbox, where its person wished it.

Promises that only an idle chat is typed to that its person lets be woken, in the
pane that its own process runs in, once until what waited is gone; and that the
sender learns of it as `typed`.
"""

from __future__ import annotations

from bridge.core import remotes
from bridge.core.effects import SaveForeignReceipt
from bridge.core.records import DeliveryState, Receipt
from bridge.driver.bridge import Bridge
from bridge.driver.queue import AttachmentQueue
from bridge.providers import process
from bridge.routes.tmux import TmuxPane

TYPED = "typed"


async def nudge(bridge: Bridge, queue: AttachmentQueue) -> bool:
    """Type the one line; False where no pane was named or it could not be done."""
    named = remotes.pane(queue.record.wants)
    if named is None or not queue.is_idle or not bridge.lets_wake(queue):
        return False
    rows = queue.in_state(DeliveryState.PENDING)

    def has_program(pane_pid: int) -> bool:
        chain = process.ancestry_of(queue.record.process_key.pid)
        if not chain.whole or not chain.chain:
            return False
        is_it = process.key_of(chain.chain[0]) == queue.record.process_key
        return is_it and pane_pid in [facts.pid for facts in chain.chain]

    why = await TmuxPane(named.socket, named.pane).type_line(has_program)
    bridge.log.info("nudged", name=queue.record.name, why=why)
    if why:
        return False
    at = bridge.clock.wall()
    async with queue.turn:
        if not queue.is_forgotten:
            await queue.commit(
                [
                    SaveForeignReceipt(
                        Receipt(row.attachment_id, row.message_id, TYPED, at)
                    )
                    for row in rows
                ]
            )
    return True
