"""One local call: who asks, whether they may, what is answered.

Promises that a verb is carried out only after its caller was named by the
kernel's facts and found in that caller's list, and that each verb which only the
person may use is logged with who used it.
"""

from __future__ import annotations

from typing import Any

from bridge.core import authority
from bridge.core.caller import Nobody, OwnSession, Person, call_caller
from bridge.driver import identity, persons, table, verbs, wake_test, watching
from bridge.driver.bridge import Bridge
from bridge.driver.queue import AttachmentQueue
from bridge.errors import EXIT_NOT_ALLOWED, Refused
from bridge.local import replies, requests
from bridge.local.requests import AnyRequest
from bridge.peer import Peer

Asker = OwnSession | Person | Nobody


async def answer_call(bridge: Bridge, peer: Peer, request: AnyRequest) -> object:
    """The answer of one request; raises BridgeError for a no."""
    caller = call_caller(identity.evidence(bridge, peer.pid))
    verb = request.__struct_config__.tag
    identity.check(authority.may(caller, str(verb)))
    if isinstance(caller, Person) and verb in authority.PRIVILEGED:
        bridge.note_privileged(str(verb), caller.description)
    match request:
        case requests.Hello():
            return persons.hello(bridge)
        case requests.Status():
            return persons.status(bridge)
        case requests.Stop():
            return persons.stop(bridge)
        case requests.Agents(name=name):
            return replies.AgentsReply(table.rows(bridge, name))
        case requests.WakeTest(name=name):
            return await wake_test.begin(bridge, name)
        case requests.WakeProgress(known=known):
            return await wake_test.progress(bridge, known)
        case requests.Prepare():
            return await persons.prepare(bridge, caller, request)
        case requests.Attach():
            return await persons.attach(bridge, caller, request)
        case requests.Detach():
            return await persons.detach(bridge, caller, request)
        case _:
            return await _messages(bridge, caller, request)


async def _messages(bridge: Bridge, caller: Asker, request: AnyRequest) -> object:
    if isinstance(caller, Person):
        return await persons.messages(bridge, request)
    assert isinstance(caller, OwnSession)  # noqa: S101 - authority.may said so
    queue = identity.own_queue(bridge, caller)
    _check_provider(caller, getattr(request, "provider", ""))
    if isinstance(request, requests.SessionWatch):
        return await watching.watch(bridge, queue, request.session_id, request.after)
    return await _own(bridge, queue, request)


async def _own(
    bridge: Bridge, queue: AttachmentQueue, request: AnyRequest
) -> dict[str, Any]:
    match request:
        case requests.SessionSend():
            return await verbs.send(
                bridge, queue, request.target, request.message, request.submission_id
            )
        case requests.SessionReply():
            return await verbs.reply(
                bridge,
                queue,
                request.message,
                request.message_id,
                request.inbox_id,
                request.submission_id,
            )
        case requests.SessionRead():
            return await verbs.read(
                bridge, queue, request.inbox_id, request.after, request.wait_s
            )
        case requests.SessionAck():
            return await verbs.ack(bridge, queue, request.message_id, request.delivery)
        case requests.SessionPeers():
            return await verbs.peers(bridge, queue)
        case requests.SessionPurpose(purpose=purpose):
            return await verbs.set_purpose(bridge, queue, purpose)
        case requests.SessionMessageStatus(id=id_):
            return await verbs.status(bridge, queue, id_)
        case _:
            raise Refused("unknown_verb", "This bridge does not know that.")


def _check_provider(caller: OwnSession, provider: str) -> None:
    if provider and provider != caller.provider:
        raise Refused(
            "other_provider",
            f"This command runs below {caller.provider}, not below {provider}, so "
            "nothing was done.",
            f"Use --provider {caller.provider}.",
            exit_code=EXIT_NOT_ALLOWED,
        )
