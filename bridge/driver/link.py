"""The message server as this bridge reaches it: one parent, a child per attachment.

Owns the callers. Promises that a child's tokens come from its lease file and
from nowhere else, and that a new lease replaces the old proof at once.
"""

from __future__ import annotations

from bridge.clock import Clock
from bridge.core.ids import AttachmentId
from bridge.errors import Refused
from bridge.store.leases import Leases
from bridge.upstream.api import Caller
from bridge.upstream.clients import Server
from bridge.upstream.credentials import ChildCredential, Credential


class Link:
    """See the module; `name` is what people call this server."""

    def __init__(
        self,
        server: Server,
        parent: Credential,
        leases: Leases,
        clock: Clock,
        host_id: str,
        name: str,
    ) -> None:
        self.server = server
        self.parent = Caller(server, parent, clock)
        self.host_id = host_id
        self.name = name
        self._leases = leases
        self._clock = clock
        self._children: dict[AttachmentId, Caller] = {}

    async def child(self, attachment_id: AttachmentId) -> Caller:
        """Who speaks for this attachment; raises Refused when its tokens are gone."""
        known = self._children.get(attachment_id)
        if known is not None:
            return known
        tokens = await self._leases.read(attachment_id)
        if tokens is None:
            raise Refused(
                "lease_missing",
                "The proof of this attachment is gone from this computer, so the "
                "server cannot be asked for it.",
                "Attach the chat again.",
                status=401,
            )
        credential = ChildCredential(
            self.server, attachment_id, tokens, self._leases, self._clock
        )
        caller = Caller(self.server, credential, self._clock)
        self._children[attachment_id] = caller
        return caller

    def forget(self, attachment_id: AttachmentId) -> None:
        """The tokens changed or are gone: read them anew next time."""
        self._children.pop(attachment_id, None)
