"""The submission rows: one id of one agent is one row, and what waits to go out."""

from __future__ import annotations

import sqlite3

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from bridge.core.ids import AgentId, AttachmentId, SubmissionId
from bridge.core.records import Submission, SubmissionState
from bridge.store import submissions
from bridge.store.deliveries import Usage
from tests.store.examples import AGENT_ID, ANY_SUBMISSION, ATTACHMENT_ID, submission
from tests.store.real_file import RealFile

SUBMISSION_ID = SubmissionId("sub-1")
OTHER_ID = AttachmentId("att-2")
OPEN = {
    SubmissionState.QUEUED,
    SubmissionState.IN_FLIGHT,
    SubmissionState.UNCERTAIN,
    SubmissionState.WAITING,
}


@given(ANY_SUBMISSION, st.sampled_from(SubmissionState))
def test_a_submission_is_read_as_it_was_written(
    any_file: RealFile, record: Submission, state: SubmissionState
) -> None:
    any_file.empty()
    saved = replace(record, state=state)
    submissions.save(any_file.writing, saved)

    key = (saved.agent_id, saved.submission_id)
    assert any_file.reading(submissions.read_one, *key) == saved
    assert any_file.reading(submissions.read_of, ATTACHMENT_ID) == [saved]


def test_its_state_and_its_sign_come_back_as_their_own_types(file: RealFile) -> None:
    submissions.save(file.writing, submission(told=True))

    found = file.reading(submissions.read_one, AGENT_ID, SUBMISSION_ID)
    assert found is not None
    assert found.state is SubmissionState.QUEUED
    assert found.told is True


def test_a_submission_that_is_not_there_is_none(file: RealFile) -> None:
    submissions.save(file.writing, submission(agent_id=AgentId("agent-2")))

    assert file.reading(submissions.read_one, AGENT_ID, SUBMISSION_ID) is None


def test_one_id_of_one_agent_is_one_row_whichever_attachment_carries_it(
    file: RealFile,
) -> None:
    moved = submission(attachment_id=OTHER_ID)
    submissions.save(file.writing, submission())
    submissions.save(file.writing, moved)

    assert file.reading(submissions.read_of, ATTACHMENT_ID) == []
    assert file.reading(submissions.read_of, OTHER_ID) == [moved]


def test_two_agents_may_use_the_same_id(file: RealFile) -> None:
    other = submission(2, submission_id=SUBMISSION_ID, agent_id=AgentId("agent-2"))
    submissions.save(file.writing, submission())
    submissions.save(file.writing, other)

    assert file.reading(submissions.read_open) == [submission(), other]


# ---- what waits --------------------------------------------------------------------


@pytest.mark.parametrize("state", SubmissionState)
def test_a_submission_is_open_until_its_definite_answer(
    file: RealFile, state: SubmissionState
) -> None:
    saved = submission(state=state)
    submissions.save(file.writing, saved)

    assert file.reading(submissions.read_open) == ([saved] if state in OPEN else [])


@pytest.mark.parametrize("state", SubmissionState)
@pytest.mark.parametrize("told", [False, True])
def test_only_a_refusal_that_its_agent_does_not_know_is_untold(
    file: RealFile, state: SubmissionState, told: bool
) -> None:
    saved = submission(state=state, told=told)
    submissions.save(file.writing, saved)

    is_untold = file.reading(submissions.read_untold) == [saved]
    assert is_untold is (state is SubmissionState.REFUSED and not told)


@given(st.permutations(range(1, 6)), st.sampled_from(["queued", "refused"]))
def test_submissions_are_read_in_the_order_of_their_numbers(
    any_file: RealFile, numbers: list[int], state: str
) -> None:
    any_file.empty()
    for number in numbers:
        saved = submission(number, state=SubmissionState(state))
        submissions.save(any_file.writing, saved)

    read = submissions.read_open if state == "queued" else submissions.read_untold
    for found in (
        any_file.reading(read),
        any_file.reading(submissions.read_of, ATTACHMENT_ID),
    ):
        assert [each.number for each in found] == sorted(numbers)


def test_the_last_number_is_the_highest_of_any_state(file: RealFile) -> None:
    assert file.reading(submissions.last_number) == 0

    submissions.save(file.writing, submission(7, state=SubmissionState.ACCEPTED))
    submissions.save(file.writing, submission(3))
    assert file.reading(submissions.last_number) == 7


@given(
    st.lists(
        st.tuples(st.sampled_from(SubmissionState), st.none() | st.text(max_size=9)),
        max_size=9,
    )
)
def test_usage_is_open_rows_and_utf_8_bytes_of_their_bodies(
    any_file: RealFile, kept: list[tuple[SubmissionState, str | None]]
) -> None:
    any_file.empty()
    for number, (state, body) in enumerate(kept, 1):
        submissions.save(any_file.writing, submission(number, state=state, body=body))
    waiting = [body or "" for state, body in kept if state in OPEN]

    assert any_file.reading(submissions.usage) == Usage(
        len(waiting), sum(len(body.encode()) for body in waiting)
    )


# ---- forgetting --------------------------------------------------------------------


def test_a_submission_is_forgotten_by_the_attachment_that_has_it(
    file: RealFile,
) -> None:
    """A late word of the lease before it leaves the row where it is now."""
    submissions.save(file.writing, submission(attachment_id=OTHER_ID))
    submissions.forget(file.writing, ATTACHMENT_ID, SUBMISSION_ID)
    assert file.count("submission") == 1

    submissions.forget(file.writing, OTHER_ID, SUBMISSION_ID)
    assert file.count("submission") == 0


def test_a_submission_of_nobody_is_refused_by_the_file(file: RealFile) -> None:
    with pytest.raises(sqlite3.IntegrityError, match="FOREIGN KEY"):
        submissions.save(file.writing, submission(attachment_id=AttachmentId("att-9")))
