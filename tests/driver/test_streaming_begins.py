"""An attachment's stream before its first connection: the proof that goes with it."""

from __future__ import annotations

import trio
from trio.testing import MockClock

from bridge.core.ids import AttachmentId
from bridge.core.records import AttachmentState
from bridge.driver.bridge import Bridge
from bridge.errors import Unavailable
from bridge.upstream.api import Caller
from bridge.upstream.credentials import FixedToken
from tests.driver.virtual import (
    VirtualClock,
    VirtualLink,
    attached,
    streaming,
    virtual_bridge,
)
from tests.fakes.routed_server import RoutedServer


class BusyLink(VirtualLink):
    """A computer without a descriptor for the proof, for the first minute."""

    def __init__(self, bridge: Bridge) -> None:
        super().__init__(bridge.link.server, FixedToken("cnry-token"), VirtualClock())
        self.asked = 0

    async def child(self, attachment_id: AttachmentId) -> Caller:
        self.asked += 1
        if trio.current_time() < 60:
            raise Unavailable("lease_not_now", "Too many open files.")
        return await super().child(attachment_id)


async def test_a_proof_that_cannot_be_read_just_now_is_waited_for(
    autojump_clock: MockClock,
) -> None:
    server = RoutedServer(stream=lambda _: streaming())
    async with virtual_bridge(server, VirtualClock()) as bridge:
        bridge.link = link = BusyLink(bridge)
        queue = await attached(bridge)
        await trio.sleep(50)
        trouble = queue.stream_trouble
        await trio.sleep(60)

        assert trouble == "lease_not_now"
        assert queue.stream_trouble == ""
        assert queue.record.state is AttachmentState.ATTACHED
        assert queue.heard_server_at is not None
        assert link.asked < 30
