"""The offer rows: which are out, and how long each stays."""

from __future__ import annotations

import sqlite3

import pytest
from hypothesis import given

from bridge.core.ids import AttachmentId, MessageId, OfferId
from bridge.core.records import Offer, OfferOutcome
from bridge.store import offers
from tests.store.examples import ANY_OFFER, ATTACHMENT_ID, offer
from tests.store.real_file import RealFile

OFFER_ID = OfferId("offer-1")
OTHER_ID = AttachmentId("att-2")


@given(ANY_OFFER)
def test_an_offer_is_read_as_it_was_written(any_file: RealFile, record: Offer) -> None:
    any_file.empty()
    offers.save(any_file.writing, record)

    assert any_file.reading(offers.read_one, record.offer_id) == record
    assert any_file.reading(offers.read_all, ATTACHMENT_ID) == [record]


def test_its_ids_and_its_outcome_come_back_as_their_own_types(file: RealFile) -> None:
    ids = (MessageId('a "quoted" id'), MessageId("a, b"), MessageId(""))
    offers.save(file.writing, offer(message_ids=ids, named_ids=()))

    found = file.reading(offers.read_one, OFFER_ID)
    assert found is not None
    assert found.message_ids == ids
    assert found.named_ids == ()
    assert found.outcome is OfferOutcome.OUT


def test_an_offer_that_is_not_there_is_none(file: RealFile) -> None:
    assert file.reading(offers.read_one, OFFER_ID) is None


@pytest.mark.parametrize("outcome", OfferOutcome)
def test_only_an_offer_whose_outcome_nobody_noted_is_out(
    file: RealFile, outcome: OfferOutcome
) -> None:
    offers.save(file.writing, offer())
    offers.save_outcome(file.writing, OFFER_ID, outcome)

    is_out = file.reading(offers.read_out) == [offer()]
    assert is_out is (outcome is OfferOutcome.OUT)
    assert file.reading(offers.read_one, OFFER_ID) == offer(outcome=outcome)


def test_an_outcome_concerns_one_offer(file: RealFile) -> None:
    for number in (1, 2):
        offers.save(file.writing, offer(number))
    offers.save_outcome(file.writing, OFFER_ID, OfferOutcome.EMITTED)
    offers.save_outcome(file.writing, OfferId("offer-9"), OfferOutcome.EMITTED)

    assert file.reading(offers.read_out) == [offer(2)]
    assert file.count("offer") == 2


def test_offers_are_read_oldest_first(file: RealFile) -> None:
    """Of one attachment or of all; those of one moment by their id."""
    of_another = offer(4, at=0.5, attachment_id=OTHER_ID)
    for saved in (offer(3, at=2.0), offer(2, at=2.0), offer(1), of_another):
        offers.save(file.writing, saved)
    mine = [offer(1), offer(2, at=2.0), offer(3, at=2.0)]

    assert file.reading(offers.read_all, ATTACHMENT_ID) == mine
    assert file.reading(offers.read_out) == [of_another, *mine]


@pytest.mark.parametrize("outcome", OfferOutcome)
def test_the_next_offer_clears_away_what_was_certainly_not_emitted(
    file: RealFile, outcome: OfferOutcome
) -> None:
    """And nothing else: the nonce of what may have been shown is still needed."""
    offers.save(file.writing, offer(1, outcome=outcome))
    offers.save(file.writing, offer(2))

    is_cleared = file.reading(offers.read_one, OFFER_ID) is None
    assert is_cleared is (outcome is OfferOutcome.NOT_EMITTED)


def test_the_next_offer_leaves_those_of_other_attachments(file: RealFile) -> None:
    unemitted = offer(1, attachment_id=OTHER_ID, outcome=OfferOutcome.NOT_EMITTED)
    offers.save(file.writing, unemitted)
    offers.save(file.writing, offer(2))

    assert file.reading(offers.read_all, OTHER_ID) == [unemitted]


def test_an_offer_to_nobody_is_refused_by_the_file(file: RealFile) -> None:
    with pytest.raises(sqlite3.IntegrityError, match="FOREIGN KEY"):
        offers.save(file.writing, offer(attachment_id="att-9"))
