"""How much of a page one tool result shows.

Owns the cut. Promises oldest first without a gap, at least one character of one
message, never more of them than the host passes on whole, and that what is left
out is said with how to read on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

Page = Mapping[str, Any]
Fits = Callable[[Page], bool]

_MORE = "There are more messages: read on with after={after}."
_PART = (
    "This is a part of one message, from character {start} to {end} of {length}: "
    "read on with after={after} and start={end}."
)


def fitted(page: Page, after: int, start: int, fits: Fits) -> Page:
    """As much of the page as `fits`; `start` characters of its first message went.

    `page` has `messages`, each with its `sequence` and text in `message`, and
    `next_cursor` and `note`; `after` is the cursor that it was read from.
    """
    messages = [dict(each) for each in page["messages"]]
    if messages:
        messages[0]["message"] = messages[0]["message"][start:]
    shown: Page = {**page, "messages": messages}
    if not messages or fits(shown):
        return shown
    fitting = None
    for count in range(1, len(messages)):
        cursor = messages[count - 1]["sequence"]
        shown = _with(page, messages[:count], cursor, _MORE.format(after=cursor))
        if not fits(shown):
            break
        fitting = shown
    return fitting or _cut(page, messages[0], after, start, fits)


def _cut(
    page: Page, message: dict[str, Any], after: int, start: int, fits: Fits
) -> Page:
    """The longest beginning of the text that fits."""
    text = message["message"]

    def beginning(count: int) -> Page:
        if count >= len(text):
            return _with(page, [message], message["sequence"], "")
        end, length = start + count, start + len(text)
        how = _PART.format(start=start, end=end, length=length, after=after)
        return _with(page, [{**message, "message": text[:count]}], after, how)

    low, high = 1, max(1, len(text) - 1)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(beginning(middle)) else (low, middle - 1)
    return beginning(low)


def _with(page: Page, messages: list[dict[str, Any]], cursor: int, how: str) -> Page:
    note = f"{page['note']} {how}".strip()
    return {**page, "messages": messages, "next_cursor": cursor, "note": note}
