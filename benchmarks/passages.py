"""The Python passages of a lab's text, to be run as they stand."""

from __future__ import annotations

import re
from typing import Any

from warpbook_labs.course.session import find


def passages(lab_id: str) -> list[str]:
    """Give the blocks of Python in the text of a lab of the catalogue, in order."""
    return re.findall(r"^```python\n(.*?)^```$", find(lab_id).text, re.M | re.S)


def run_passage(lab_id: str, begin: str, **names: Any) -> dict[str, Any]:
    """Run the one passage that begins so, with names that are there before.

    Returns:
        All names that are there after it.

    Raises:
        ValueError: no passage begins so, or more than one.
    """
    [source] = [text for text in passages(lab_id) if text.startswith(begin)]
    # what is defined by it travels to workers by value
    after = {"__name__": "passage", **names}
    exec(compile(source, f"{lab_id}/text.md", "exec"), after)
    return after
