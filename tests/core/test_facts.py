"""The eight facts: one plain sentence each, about tools that exist."""

from __future__ import annotations

import re

import pytest

from bridge.core.facts import FACTS, Fact
from bridge.tools.catalog import TOOLS

KEYS = [
    "replies_optional", "final_text", "receipt", "acknowledge",
    "reply", "deduplicate", "purpose", "permission",
]  # fmt: skip


def key_of(fact: Fact) -> str:
    return fact.key


def test_there_are_eight_facts_in_this_order() -> None:
    assert [fact.key for fact in FACTS] == KEYS


@pytest.mark.parametrize("fact", FACTS, ids=key_of)
def test_a_fact_is_one_plain_sentence_on_one_line(fact: Fact) -> None:
    sentence = fact.sentence

    assert re.fullmatch(r"[A-Z][\x20-\x7e]*[a-z]\.", sentence)
    assert ". " not in sentence
    assert not set(sentence) & set("<>&{}\\`")
    assert len(sentence) <= 200


@pytest.mark.parametrize("fact", FACTS, ids=key_of)
def test_a_fact_names_only_tools_that_exist(fact: Fact) -> None:
    named = set(re.findall(r"agent_message_\w+", fact.sentence))

    assert named <= {tool.name for tool in TOOLS}


def test_every_rule_of_use_names_its_tool() -> None:
    named = {
        tool
        for fact in FACTS
        for tool in re.findall(r"agent_message_\w+", fact.sentence)
    }

    assert named == {
        "agent_message_reply",
        "agent_message_send",
        "agent_message_ack",
        "agent_message_set_purpose",
    }


def test_a_fact_cannot_be_changed_where_it_is_shown() -> None:
    with pytest.raises(AttributeError, match="immutable"):
        FACTS[0].sentence = "Replies are required."  # type: ignore[misc]
