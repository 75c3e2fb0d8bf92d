"""Words about the first wrong element: what it is, and which lines wrote it."""

from __future__ import annotations

from warpbook_labs.cases.comparison import WrongElement
from warpbook_labs.lab.texts import named_lines


def wrong_words(wrong: WrongElement) -> str:
    """Say what is wrong in one line."""
    return f"{number_words(wrong)}. {count_words(wrong)}{_writer_words(wrong)}"


def number_words(wrong: WrongElement) -> str:
    """Say what an element is, and what it must be."""
    place = ", ".join(map(str, wrong.index))
    return (
        f"{wrong.output}[{place}] is {wrong.got}; right is {wrong.expected}, "
        f"{wrong.allowed}"
    )


def _writer_words(wrong: WrongElement) -> str:
    if wrong.beside_line is not None:
        return _beside_words(wrong)
    if wrong.line is None:
        return ""
    if wrong.from_lines:
        computing = named_lines(wrong.from_lines)
        return f" Line {wrong.line} wrote it last, from what {computing} computed."
    if wrong.computed_line is None:
        return f" Line {wrong.line} wrote it last."
    return f" Line {wrong.computed_line} computed it; line {wrong.line} wrote it last."


def _beside_words(wrong: WrongElement) -> str:
    """Say of an element that nobody wrote who wrote beside it, or would have."""
    verb = "wrote beside it" if wrong.is_beside_written else "would write it"
    words = f" Line {wrong.beside_line} {verb}"
    launches, lines = wrong.launch_lines, wrong.from_lines
    deciding = [named_lines(lines)] if lines else []
    if launches:
        noun = "launch" if len(launches) == 1 else "launches"
        deciding.append(f"the {noun} on {named_lines(launches)}")
    if not deciding:
        return f"{words}."
    plural = len(lines) + len(launches) > 1
    decide = "decide" if plural else "decides"
    return f"{words}; {' and '.join(deciding)} {decide} where, and which threads do."


def count_words(wrong: WrongElement) -> str:
    """Say how many elements are wrong."""
    return f"{wrong.wrong:,} of {wrong.elements:,} elements are wrong."
