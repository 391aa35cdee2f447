"""One hook: who says it, what it means, what is printed.

Promises that a hook of a chat that is not attached is answered with nothing and
no network call, that a chat is offered only its own mail, and that whatever goes
wrong ends in nothing printed and nothing lost.
"""

from __future__ import annotations

import trio
from msgspec import Struct
from msgspec.structs import replace

from bridge.core import loopguard, texts
from bridge.core.caller import HookCaller, HookEvent, HookInput, hook_caller
from bridge.core.command import typed_command
from bridge.core.effects import SaveForeignReceipt
from bridge.core.events import SessionEnded, Unconfirmed
from bridge.core.ids import OfferId
from bridge.core.loopguard import Hearing, Verdict
from bridge.core.records import (
    AttachmentState,
    DeliveryState,
    OfferOutcome,
    ProcessKey,
    Receipt,
    Want,
)
from bridge.core.render import Print
from bridge.driver import (
    agy_ways,
    chatting,
    identity,
    natives,
    noticing,
    offering,
    stepping,
)
from bridge.driver.bridge import Bridge
from bridge.driver.cutting_short import unless_stopped
from bridge.driver.queue import AttachmentQueue
from bridge.errors import BridgeError, Refused
from bridge.local.dialogue import HookDialogue, Outcome
from bridge.providers import process
from bridge.providers.known import Provider, nothing_to_say, provider_named

MAIL_WAIT_S = 2
_OUTCOMES = {
    Outcome.PRINTED: OfferOutcome.EMITTED,
    Outcome.UNPRINTED: OfferOutcome.NOT_EMITTED,
    Outcome.UNKNOWN: OfferOutcome.UNKNOWN,
}
# Hosts start a session anew when they shorten a long one, often while its agent works.
_IN_THE_MIDDLE = "compact"
_IN_TURN = (HookEvent.PROMPT, HookEvent.TOOL_ENDED)
_MAY_BE_TYPED = (HookEvent.PROMPT, HookEvent.COMMAND)
# A slash command, a shell line, a note, a command of ours: as hosts mark them.
_COMMANDS = ("/", "!", "#", "$agentworks", "agentworks")
_SPEAKS_OF_NOW = (
    HookEvent.SESSION_STARTED,
    HookEvent.PROMPT,
    HookEvent.TOOL_ENDED,
    HookEvent.TURN_ENDED,
)


class Hook(Struct, frozen=True):
    """One hook that may speak: what was said, by which process.

    `mark` is the same for the hooks of one event, which all are told the same.
    """

    provider: Provider
    said: HookInput
    caller: HookCaller
    key: ProcessKey
    mark: int


async def answer_hook(bridge: Bridge, dialogue: HookDialogue) -> None:
    """Serve one hook connection from its first byte to its last word."""
    dialogue.nothing = nothing_to_say(dialogue.provider)
    try:
        hook = _hear(bridge, dialogue, await dialogue.receive())
    except BridgeError as error:
        bridge.log.debug("hook_not_heard", code=error.code)
        await dialogue.silence()
        return
    if _is_twin(bridge, hook):
        await dialogue.silence()
        return
    await _note_session(bridge, hook)
    queue = bridge.roster.present(hook.provider.NAME, hook.said.session_id, hook.key)
    if queue is not None:
        queue.hooks_heard = True
        queue.last_contact_at = bridge.clock.wall()
        agy_ways.take_access(bridge, queue, dialogue.peer.pid)
    if queue is not None:
        _note_turn(queue, hook.said)
    await _answer(bridge, dialogue, hook, queue)
    if queue is not None and hook.said.event in _SPEAKS_OF_NOW and _may_find(queue):
        bridge.start(_look, bridge, queue)


def _may_find(queue: AttachmentQueue) -> bool:
    """Could a look change anything? Of most hooks it could not: they pay for none."""
    return natives.lacks_way(queue) or bool(queue.in_state(DeliveryState.PENDING))


def _note_turn(queue: AttachmentQueue, said: HookInput) -> None:
    """Busy from a prompt on; idle again at the end of a turn that brought nothing."""
    if said.is_subagent:
        return
    if said.event is HookEvent.SESSION_STARTED and said.source != _IN_THE_MIDDLE:
        queue.is_idle = True
    elif said.event in _IN_TURN and _reaches_model(said):
        queue.is_idle = False


async def _look(bridge: Bridge, queue: AttachmentQueue) -> None:
    """A native way may have come; where none has, the person may have to know."""
    if queue.native.looking.locked():  # a slow program is asked for one hook at a time
        return
    await natives.look(bridge, queue)
    await noticing.look(bridge, queue)


async def _answer(
    bridge: Bridge,
    dialogue: HookDialogue,
    hook: Hook,
    queue: AttachmentQueue | None,
) -> None:
    is_subagent = hook.said.is_subagent
    match hook.said.event:
        case HookEvent.TURN_ENDED if queue is not None:
            await _turn_ended(bridge, dialogue, hook, queue)
        case HookEvent.PROMPT | HookEvent.COMMAND:
            await _prompted(bridge, dialogue, hook, queue)
        case HookEvent.TOOL_ENDED if queue is not None and not is_subagent:
            await _offer_early(bridge, dialogue, hook, queue, Want.MID_TURN)
        case HookEvent.SESSION_STARTED if queue is None:
            await _session_started(bridge, dialogue, hook)
        case HookEvent.SESSION_ENDED if queue is not None and not is_subagent:
            await dialogue.silence()
            at = bridge.clock.wall()
            await stepping.step(bridge, queue, SessionEnded(at, hook.said.source))
        case _:
            await dialogue.silence()


def _hear(bridge: Bridge, dialogue: HookDialogue, stdin: bytes) -> Hook:
    provider = provider_named(dialogue.provider)
    said = provider.read_hook(dialogue.event, stdin)
    may_be_typed = said.event in _MAY_BE_TYPED
    evidence = identity.evidence(bridge, dialogue.peer.pid, looks_above=may_be_typed)
    caller = hook_caller(provider.NAME, evidence)
    if not isinstance(caller, HookCaller):
        raise Refused(caller.code, caller.reason)
    key = process.key_of(caller.process)
    if provider.NAME == "script":
        said = replace(said, session_id=key.text())
    return Hook(provider, said, caller, key, hash((dialogue.event, stdin)))


def _is_twin(bridge: Bridge, hook: Hook) -> bool:
    """Told before by another installation; a script's events are all alike."""
    at = bridge.clock.running()
    is_script = hook.provider.NAME == "script"
    return not is_script and bridge.twins.has_heard(hook.key, hook.mark, at)


async def _note_session(bridge: Bridge, hook: Hook) -> None:
    """A one-chat process that speaks of another session has left the old one."""
    said = hook.said
    if said.is_subagent:
        return
    if said.event is HookEvent.SESSION_ENDED:
        bridge.forget_chat(hook.key, said.session_id)
        return
    if said.event not in _SPEAKS_OF_NOW:
        return
    if said.folder:
        bridge.folders[hook.key, said.session_id] = said.folder
    await note_open_chat(bridge, hook.provider.NAME, said.session_id, hook.key)


async def note_open_chat(
    bridge: Bridge, provider: str, session_id: str, key: ProcessKey
) -> None:
    """This chat is open in this process; where it has one at a time, no other is."""
    bridge.hooked.add((key, session_id))
    if not identity.has_one_chat(provider):
        return
    bridge.heard[key] = session_id
    for queue in bridge.roster.of_process(key):
        if queue.record.session_id != session_id:
            event = SessionEnded(bridge.clock.wall(), "left")
            await stepping.step(bridge, queue, event)


# ---- the turn's end ---------------------------------------------------------------


async def _turn_ended(
    bridge: Bridge, dialogue: HookDialogue, hook: Hook, queue: AttachmentQueue
) -> None:
    if hook.said.is_subagent or not await _is_its_turn(dialogue, hook, queue):
        await dialogue.silence()
        return
    try:
        await offering.settle(queue, bridge.clock)
        hearing = await _evidence(bridge, queue, hook.said)
        occasion = _occasion(bridge, hook, queue, hearing)
        goes_on = False
        if occasion is None:
            await dialogue.silence()
        else:
            goes_on = await _offer(bridge, dialogue, hook, queue, occasion)
        queue.is_idle = not goes_on
    finally:
        queue.finish_turn_end()


async def _is_its_turn(
    dialogue: HookDialogue, hook: Hook, queue: AttachmentQueue
) -> bool:
    """False for a second installation's hook, which is told of the same turn end.

    Race: a quick model ends its next turn while the outcome of the offer before is
    being saved; that is another turn end
    (test_a_turn_that_ends_while_the_one_before_is_saved_is_heard).
    """
    if queue.turn_end not in (None, hook.mark):
        await dialogue.wait(MAIL_WAIT_S, Print())
    with trio.move_on_after(MAIL_WAIT_S):
        return await queue.begin_turn_end(hook.mark)
    return False


async def _evidence(bridge: Bridge, queue: AttachmentQueue, said: HookInput) -> Hearing:
    """Take in the host's sign; an offer that it contradicts is unsure from now on."""
    at = bridge.clock.wall()
    async with queue.turn:
        hearing = loopguard.hear(queue.guard, said, at)
        queue.guard = hearing.guard
        if hearing.unconfirmed is not None:
            await _unconfirm(queue, hearing.unconfirmed, at)
    return hearing


async def _unconfirm(queue: AttachmentQueue, offer_id: OfferId, at: float) -> None:
    rows = [
        row for row in queue.in_state(DeliveryState.OFFERED) if row.offer_id == offer_id
    ]
    unsure = [
        SaveForeignReceipt(Receipt(row.attachment_id, row.message_id, "unsure", at))
        for row in rows
    ]
    await queue.take([(row.message_id, Unconfirmed(at)) for row in rows], unsure)


def _occasion(
    bridge: Bridge, hook: Hook, queue: AttachmentQueue, hearing: Hearing
) -> offering.Occasion | None:
    if hearing.verdict not in (Verdict.OFFER, Verdict.ONLY_NEW):
        return None
    return _due(bridge, hook, queue, hearing.only_since)


def _due(
    bridge: Bridge, hook: Hook, queue: AttachmentQueue, only_since: float | None = None
) -> offering.Occasion | None:
    occasion = offering.Occasion(
        route="hook",
        budget=hook.provider.BUDGET,
        program=bridge.program,
        roster=queue.others,
        only_since=only_since,
    )
    due = offering.is_due(queue, occasion, bridge.clock.wall())
    return occasion if due else None


async def _offer_early(
    bridge: Bridge,
    dialogue: HookDialogue,
    hook: Hook,
    queue: AttachmentQueue,
    wish: Want,
) -> None:
    """Before the turn's end, where the person wishes it and the host can do it."""
    is_wished = wish in queue.record.wants and hook.said.may_drain
    occasion = None
    if is_wished and hook.said.event in hook.provider.OFFERS_AT:
        await offering.settle(queue, bridge.clock)
        occasion = _due(bridge, hook, queue)
    if occasion is None:
        await dialogue.silence()
    else:
        await _offer(bridge, dialogue, hook, queue, occasion)


async def _offer(
    bridge: Bridge,
    dialogue: HookDialogue,
    hook: Hook,
    queue: AttachmentQueue,
    occasion: offering.Occasion,
) -> bool:
    """Make it; False when nothing was handed over, so that the turn is over."""
    version = identity.version_of(hook.provider.NAME, hook.caller.process)

    async def emit(offer_id: OfferId, text: str) -> OfferOutcome:
        print_ = hook.provider.print_offer(hook.said.event, text, version)
        outcome = await _answered(bridge, dialogue, print_)
        # Elsewhere the turn goes on whether the host used the text or not.
        has_sign = hook.said.event is HookEvent.TURN_ENDED
        if has_sign and outcome is OfferOutcome.EMITTED:
            nonce = queue.offer_out.nonce if queue.offer_out else ""
            queue.guard = loopguard.printed(queue.guard, offer_id, nonce)
        return outcome

    await dialogue.wait(MAIL_WAIT_S, Print())
    made = await offering.make_offer(queue, occasion, bridge.clock, emit)
    if made is None:
        await dialogue.silence()
    return made not in (None, OfferOutcome.NOT_EMITTED)


async def _answered(
    bridge: Bridge, dialogue: HookDialogue, print_: Print
) -> OfferOutcome:
    """What came of the print; a stopping bridge does not wait long for the word."""
    said = await unless_stopped(bridge, dialogue.answer, print_)
    return OfferOutcome.UNKNOWN if said is None else _OUTCOMES[said]


# ---- a prompt, a typed command ------------------------------------------------------


async def _prompted(
    bridge: Bridge,
    dialogue: HookDialogue,
    hook: Hook,
    queue: AttachmentQueue | None,
) -> None:
    command = typed_command(
        hook.said,
        host_marks_typed=identity.marks_typed(hook.provider.NAME, hook.caller.process),
        is_nested=hook.caller.is_nested,
        offered=queue.texts_out if queue is not None else (),
    )
    if command is not None:
        await chatting.answer_command(bridge, dialogue, hook, command)
        return
    if queue is None:
        await dialogue.silence()
        return
    async with queue.turn:
        hearing = loopguard.hear(queue.guard, hook.said, bridge.clock.wall())
        queue.guard = hearing.guard
    if hearing.confirmed is not None:
        queue.native.stir()
    if hearing.confirmed is not None or not _reaches_model(hook.said):
        await dialogue.silence()
    else:
        await _offer_early(bridge, dialogue, hook, queue, Want.AT_PROMPT)


def _reaches_model(said: HookInput) -> bool:
    """A command of the host's own may run no turn, and what we add would be lost."""
    return not said.is_subagent and not said.prompt.lstrip().startswith(_COMMANDS)


async def _session_started(bridge: Bridge, dialogue: HookDialogue, hook: Hook) -> None:
    """A session with an identity kept offline: the person learns how to reconnect."""
    known = bridge.roster.known(hook.provider.NAME, hook.said.session_id)
    line = None
    if known is not None and known.record.state is AttachmentState.OFFLINE:
        text = texts.session_started(known.record.name, hook.provider.NAME)
        line = hook.provider.print_person_line(HookEvent.SESSION_STARTED, text)
    if line is None:
        await dialogue.silence()
    else:
        await dialogue.answer(line)
