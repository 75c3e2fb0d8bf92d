"""What is known of one run of a cell from the shell that ran it."""

from __future__ import annotations

from typing import Any, Literal

#: characters
MOST_TITLE = 200


def cell_title(lines: list[str]) -> str:
    """Give the first line that says anything."""
    first = next((line.strip() for line in lines if line.strip()), "")
    return first[:MOST_TITLE]


def prompt_number(shell: Any) -> int | None:
    """Give the number of the cell that runs, as its prompt shows it.

    IPython 9 counts on before a cell runs and IPython 8 after it; its display hook
    knows which.
    """
    number: int | None = getattr(
        getattr(shell, "displayhook", None), "prompt_count", None
    )
    return number


def cell_status(result: Any) -> Literal["ok", "error", "interrupted"]:
    """Say how it ended; after an interrupt there may be no result at all."""
    if result is None or isinstance(_problem(result), KeyboardInterrupt):
        return "interrupted"
    return "ok" if _problem(result) is None else "error"


def did_nothing(result: Any) -> bool:
    """Tell whether it did not compile.

    IPython compiles each statement when its turn comes, so an interrupt there comes
    "before" the cell, too.
    """
    if result is None or result.error_before_exec is None:
        return False
    return not isinstance(result.error_before_exec, KeyboardInterrupt)


def _problem(result: Any) -> BaseException | None:
    """Give what ended it, if anything did."""
    error: BaseException | None = result.error_in_exec or result.error_before_exec
    return error
