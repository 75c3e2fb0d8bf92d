"""What a verdict must say of each kind of mistake, so that its cause is named."""

from __future__ import annotations

import re

#: of each cause: a finding of this kind, or words in the message
CAUSES: dict[str, str] = {
    # of kernels
    "race": r"^race\b|without an order|a barrier between",
    "uninitialised": r"uninitialised|nobody (has )?(written|wrote)|is nothing",
    "barrier": r"divergent barrier|deadlock|not come to|inactive|not at the",
    "shuffle": r"shuffle|inactive|mask of a `_sync`|names threads",
    "bounds": r"out of bounds|past the end|before the start|outside of the buffer",
    "misaligned": r"misaligned|multiple of \d+ bytes",
    "misaligned or bounds": r"misaligned|multiple of \d+ bytes|out of bounds",
    "read-only": r"read-only|is an input",
    "race or endless": r"^race\b|too long|deadlock|longer than|never end",
    "endless": r"too long|deadlock|longer than|never end",
    "launch": r"grid|block|launch",
    # right of its form, and wrong of its numbers
    "result": r"must be|right is|should be|is wrong",
    # right numbers, and more work than a lab allows
    "traffic": r"sectors|requests|bank|neighbour|global memory",
    "work": r"launch|capture|synchroni|wait|copies|bytes|time|tensor core|tl\.dot|GPU",
    "tensor cores": r"tensor core|tl\.dot",
    "speed": r"too slow|slower|of the limit|as fast",
    # of host code
    "host race": r"race|no order|without an order|waits? for|nothing makes",
    "host read too early": r"host read too early|too early|still under way",
    "released": r"released too early|given back|record_stream|given out",
    "stale graph": r"stale graph|graph",
    "capture": r"capture",
    "raised": r"Error|raised|can't be called",
}


def names_cause(cause: str, words: str) -> bool:
    """Say whether a verdict's words name a cause."""
    return re.search(CAUSES[cause], words, re.IGNORECASE | re.MULTILINE) is not None


def names_line(lines: tuple[int, ...], words: str) -> bool:
    """Say whether a verdict's words name one of the lines."""
    named = {int(each) for each in re.findall(r"\bline (\d+)", words, re.IGNORECASE)}
    return bool(named & set(lines))
