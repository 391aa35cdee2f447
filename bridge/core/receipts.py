"""One receipt: a sign about one message, on its way to the server.

Owns the table of a receipt and the order in which receipts go out. Promises that
an unsent receipt is sent again after every start until the server has it or
refuses it, and that for one message no sign goes out before a weaker one.

    unsent -> sent | refused (the lease is gone)
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from bridge.core.effects import Count, Effect, SaveReceiptState, SendReceipt
from bridge.core.events import Event, ReceiptRefused, ReceiptRestarted, ReceiptTaken
from bridge.core.ids import AttachmentId, MessageId
from bridge.core.records import Receipt, ReceiptState
from bridge.core.rules import Maker, Rule, chosen, made, stay, to, whole

UNSENT = ReceiptState.UNSENT
SENT = ReceiptState.SENT
REFUSED = ReceiptState.REFUSED

# Weakest first. What a later version may add is sent after all of these.
_ORDER = ("offered", "unsure", "typed", "admitted", "processed")

_NOTHING = stay()
_COUNT = stay(Count)

TABLE: dict[ReceiptState, dict[type[Event], Rule[ReceiptState]]] = {
    UNSENT: {
        ReceiptTaken: to(SENT, SaveReceiptState),
        ReceiptRefused: to(REFUSED, SaveReceiptState),
        ReceiptRestarted: stay(SendReceipt),
    },
    SENT: {
        ReceiptTaken: _COUNT,
        ReceiptRefused: _COUNT,
        ReceiptRestarted: _NOTHING,
    },
    REFUSED: {
        ReceiptTaken: _COUNT,
        ReceiptRefused: _COUNT,
        ReceiptRestarted: _NOTHING,
    },
}


def handle(record: Receipt, event: Event) -> tuple[Receipt, list[Effect]]:
    """The next record and what must happen, in order.

    On "nothing" and on effects that change no state the record is the same
    object. KeyError for an event that is not a receipt's.
    """
    rule = chosen(TABLE[record.state][type(event)], record, event)
    after = record
    if rule.next_state is not None:
        after = replace(record, state=rule.next_state)
    return after, made(rule, _MAKERS, record, after, event)


def due(receipts: Iterable[Receipt]) -> list[Receipt]:
    """What the server does not have, in the order to send it.

    Messages come in the order of their first unsent receipt; the signs about one
    message stand together, the weakest first.
    """
    by_message: dict[tuple[AttachmentId, MessageId], list[Receipt]] = {}
    for receipt in receipts:
        if receipt.state is UNSENT:
            key = (receipt.attachment_id, receipt.message_id)
            by_message.setdefault(key, []).append(receipt)
    return [
        receipt for group in by_message.values() for receipt in sorted(group, key=_rank)
    ]


def _rank(receipt: Receipt) -> int:
    known = receipt.delivery in _ORDER
    return _ORDER.index(receipt.delivery) if known else len(_ORDER)


_MAKERS: dict[type[Effect], Maker] = {
    **whole(SaveReceiptState, SendReceipt),
    Count: lambda before, after, event: [
        Count(f"{type(event).__name__} in {before.state.value}")
    ],
}
