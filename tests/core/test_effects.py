"""What a machine may ask for: values that never change, and saves of records."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import pytest

from bridge.core import effects
from bridge.core.effects import Effect, Save, SaveDelivery, SaveReceipt
from bridge.core.records import (
    Attachment,
    Delivery,
    Offer,
    OfferOutcome,
    Receipt,
    Submission,
)
from tests.core.examples import message

KEPT = {Attachment, Delivery, Offer, OfferOutcome, Receipt, Submission}


def below(base: type[Effect]) -> Iterator[type[Effect]]:
    """Every kind below this one, as the module itself defines them."""
    for kind in base.__subclasses__():
        if kind.__module__ == effects.__name__:
            yield kind
            yield from below(kind)


KINDS = sorted(set(below(Effect)), key=lambda kind: kind.__name__)
SAVES = [kind for kind in KINDS if issubclass(kind, Save)]
OF_ONE_DELIVERY = [kind for kind in SAVES if kind.__struct_fields__ == ("delivery",)]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_an_effect_never_changes_after_it_was_made(kind: type[Effect]) -> None:
    made = kind(*(None for _ in kind.__struct_fields__))

    for name in kind.__struct_fields__:
        with pytest.raises(AttributeError, match="immutable"):
            setattr(made, name, 1)
    assert kind.__struct_config__.frozen


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_kind_of_effect_says_what_it_means(kind: type[Effect]) -> None:
    assert kind.__doc__
    assert kind.__doc__.strip().endswith(".")


@pytest.mark.parametrize("kind", SAVES, ids=lambda kind: kind.__name__)
def test_a_save_carries_records_and_ids_and_nothing_else(kind: type[Effect]) -> None:
    """So a commit never needs the world: it can be done again after a crash."""
    for field in msgspec.structs.fields(kind):
        is_id = getattr(field.type, "__supertype__", None) is str
        assert is_id or field.type in KEPT, f"{kind.__name__}.{field.name}"


def test_every_save_of_a_delivery_carries_its_whole_next_record() -> None:
    of_a_delivery = [kind for kind in SAVES if issubclass(kind, SaveDelivery)]

    assert SaveReceipt in of_a_delivery
    for kind in of_a_delivery:
        assert msgspec.structs.fields(kind)[0].type is Delivery


def test_two_saves_of_one_record_are_the_same_only_if_they_mean_the_same() -> None:
    """What was emitted and what waits again must not pass for each other."""
    made = [kind(message()) for kind in OF_ONE_DELIVERY]

    assert len(made) >= 9
    for one in made:
        assert [other for other in made if other == one] == [one]


def test_what_touches_the_world_is_no_save() -> None:
    """Only saves may be committed in one transaction with their neighbours."""
    world = {kind.__name__ for kind in KINDS if kind not in SAVES} - {"Save"}

    assert world == {
        "Emit", "SendReceipt", "Answer", "AnswerNotTaken", "Refuse", "Count", "Send",
        "TellAgent", "TellPerson", "OpenStream", "CloseStream", "EndLease",
        "OrphanSubmissions", "TellServerOffline", "TellServerDetached", "EraseTokens",
    }  # fmt: skip
