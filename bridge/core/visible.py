"""Untrusted text made safe to show, to an agent or on a terminal.

Owns which characters are shown as escapes and which host tags are broken.
Promises, for any text whatever: of all controls only newline and tab stay, no
character that is invisible, reorders or hides text stays, no lone surrogate
stays, no tag stays that a host gives a meaning to, and showing a text twice
changes nothing more. An escape is for the eye, not an encoding: a text that
spells out an escape looks the same as the character.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

ONE_LINE_LIMIT = 512

# The ranges are written out, so that every Python version shows the same text;
# test_visible.py compares them with the Unicode tables of the running one.
_HIDDEN = re.compile(
    "["
    "\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 and C1 controls, but not \t and \n
    "\xad\u034f\u061c"  # soft hyphen, grapheme joiner, Arabic letter mark
    "\u0600-\u0605\u06dd\u070f\u0890\u0891\u08e2"  # formatting of Arabic, Syriac
    "\u115f\u1160\u3164\uffa0"  # Hangul fillers: letters that show nothing
    "\u17b4\u17b5\u180b-\u180f"  # Khmer inherent vowels, Mongolian selectors
    "\u200b-\u200f\u2028-\u202e"  # zero width, line separators, bidi
    "\u2060-\u206f"  # invisible operators, bidi isolates
    "\ud800-\udfff"  # lone surrogates: no encoding can write them
    "\ufe00-\ufe0e\ufeff\ufff0-\ufffb"  # variation selectors, BOM, annotations
    "\U000110bd\U000110cd\U00013430-\U0001343f"  # Kaithi, hieroglyph joiners
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"  # shorthand, musical controls
    "\U000e0000-\U000e0fff"  # tags and the rest of the invisible plane
    "]"
    # U+FE0F makes a symbol an emoji; after anything else it only hides.
    "|(?<![#*0-9\xa9\xae\u203c\u2049\u2100-\u27bf\u2934-\u2b55\u3030\u303d"
    "\u3297\u3299\U0001f000-\U0001faff])\ufe0f"
)
# Most texts hold nothing of this and are shown as they are; finding that out
# costs a tenth of replacing nothing.
_MAY_CHANGE = re.compile("[^\t\n\x20-\x7e]|<")
_MAY_CHANGE_IN_LABEL = re.compile("[^\x20-\x7e]|[<>&]")
_SHORT_ESCAPES = {"\n": "\\n", "\t": "\\t", "\r": "\\r"}

# Hosts wrap what they relay in these; versions differ in what they escape, so
# both the opening and the closing form are broken here.
_HOST_TAG = re.compile(
    r"<(?=\s*/?\s*(?:system-reminder|hook_prompt|channel|cross-session-message)"
    r"|\|)",
    re.IGNORECASE,
)


def _escape(character: str) -> str:
    return _SHORT_ESCAPES.get(character, f"\\u{{{ord(character):x}}}")


def visible(text: str) -> str:
    """The text with hidden characters as escapes and host tags broken.

    Newline and tab stay; a carriage return before a newline is dropped.
    """
    if _MAY_CHANGE.search(text) is None:
        return text
    unfolded = text.replace("\r\n", "\n")
    shown = _HIDDEN.sub(lambda match: _escape(match.group()), unfolded)
    return _HOST_TAG.sub(lambda match: match.group() + "\\", shown)


def all_visible(facts: Mapping[str, object]) -> dict[str, Any]:
    """The JSON object with every text in it made visible, at any depth."""
    return {key: _all_visible(value) for key, value in facts.items()}


def _all_visible(value: object) -> object:
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, Mapping):
        return all_visible(value)
    if isinstance(value, list | tuple):
        return [_all_visible(each) for each in value]
    return value


def one_line(text: str, limit: int = ONE_LINE_LIMIT) -> str:
    """The visible text on one line, cut to `limit` characters with an ellipsis."""
    shown = re.sub(r"[\n\t]", lambda match: _escape(match.group()), visible(text))
    return shown if len(shown) <= limit else shown[: limit - 1] + "…"


def label(text: str, limit: int = ONE_LINE_LIMIT) -> str:
    """One line without `<`, `>` and `&`, for names, ids and times in our headers."""
    if len(text) <= limit and _MAY_CHANGE_IN_LABEL.search(text) is None:
        return text
    shown = re.sub(r"[<>&]", lambda match: _escape(match.group()), text)
    return one_line(shown, limit)
