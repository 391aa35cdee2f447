"""Setup says once who the agent is here and who else is there."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from bridge.core import guidance, setup
from bridge.core.render import Budget, OfferContent, make_nonce, render_offer
from bridge.core.setup import RosterEntry
from tests.core.examples import ANY_TEXT, BOB, NONCE, message
from tests.core.golden_text import golden
from tests.core.test_visible import HOST_TAG, hidden_characters

ROSTER = (
    RosterEntry("zoe", "claude", "Writes the manual", is_online=True),
    RosterEntry("Bob", "claude", "it is bob himself", is_online=True),
    RosterEntry("alice", "codex", "Reviews the API\nand\u202e lies", is_online=False),
    RosterEntry("carol", "codex", "", is_online=True),
)
ROSTERS = st.lists(
    st.builds(RosterEntry, ANY_TEXT, ANY_TEXT, ANY_TEXT, st.booleans()), max_size=30
)


def test_setup_is_due_once_for_an_exact_session() -> None:
    assert setup.is_due(BOB)
    assert not setup.is_due(msgspec.structs.replace(BOB, setup_at=1.0))


def test_setup_says_who_you_are_and_who_is_online() -> None:
    text = setup.text(BOB, ROSTER)

    assert golden("setup", text) == text


def test_setup_of_an_agent_that_has_a_purpose_and_is_alone() -> None:
    own = msgspec.structs.replace(BOB, made_by="own", purpose="Reviews changes")
    text = setup.text(own, ())

    assert golden("setup_alone", text) == text


def test_setup_of_a_script() -> None:
    text = setup.text(msgspec.structs.replace(BOB, provider="script"), ROSTER[:1])

    assert golden("setup_script", text) == text


def test_the_roster_shows_at_most_20_others() -> None:
    roster = [RosterEntry(f"agent-{n:02}", "codex") for n in range(23)]
    lines = setup.text(BOB, roster).split("\n")

    assert sum(line.startswith("- agent-") for line in lines) == 20
    assert lines[-1] == "- and 3 more: agent_message_peers"


@given(ROSTERS)
def test_the_roster_is_online_first_and_without_oneself(
    roster: list[RosterEntry],
) -> None:
    others = setup.in_order(roster, "bob")
    online = [each.is_online for each in others]

    assert online == sorted(online, reverse=True)
    assert all(each.name.lower() != "bob" for each in others)


@given(ROSTERS)
def test_a_peer_cannot_write_a_line_of_its_own(roster: list[RosterEntry]) -> None:
    text = setup.text(BOB, roster)
    shown = min(len(setup.in_order(roster, "bob")), setup.ROSTER_LIMIT)
    rows = text.split("\n")[3:]

    assert sum(row.startswith("- ") for row in rows[:shown]) == shown
    assert len(rows) <= shown + 1
    assert hidden_characters(text) == set()
    assert HOST_TAG.search(text) is None


@given(ROSTERS)
def test_setup_stands_before_the_messages(roster: list[RosterEntry]) -> None:
    content = OfferContent(BOB, "", (message(),), setup=setup.text(BOB, roster))
    nonce = make_nonce(lambda count: b"\x4f" * count, content.texts())
    text = render_offer(msgspec.structs.replace(content, nonce=nonce))

    assert text.index(content.setup) < text.index("message 1 of 1")


def test_the_first_offer_says_setup_message_and_guidance() -> None:
    content = OfferContent(
        BOB,
        NONCE,
        (message(),),
        setup=setup.text(BOB, ROSTER),
        guidance=guidance.text(BOB),
    )
    text = render_offer(content)

    assert golden("offer_first", text) == text


def test_setup_alone_makes_an_offer() -> None:
    text = render_offer(OfferContent(BOB, NONCE, setup=setup.text(BOB, ROSTER)))

    assert golden("offer_setup", text) == text


def test_the_longest_setup_and_guidance_leave_room_in_every_budget() -> None:
    long = RosterEntry("n" * 64, "opencode", "漢" * 512, is_online=True)
    roster = [msgspec.structs.replace(long, name=f"{n:064}") for n in range(40)]
    spoken = OfferContent(
        BOB, NONCE, setup=setup.text(BOB, roster), guidance=guidance.text(BOB)
    )

    assert Budget("utf16", 9_500).fits(render_offer(spoken))
    assert Budget("bytes", 9_500).fits(render_offer(spoken))


def test_a_mailbox_of_the_person_has_no_program() -> None:
    assert "- me, offline" in setup.text(BOB, [RosterEntry("me", "")]).split("\n")
