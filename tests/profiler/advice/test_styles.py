"""Programs as different people write them: the change is named, and its edit agrees."""

from __future__ import annotations

import re

import pytest

from tests.profiler.advice.styles import (
    host,
    iterables,
    loops,
    operators,
    tensor_lists,
    turns,
)
from tests.profiler.advice.styles.harness import Program, advised, outcome

#: a pattern of what an edit has, and the program has not
MARKS = {
    "topk": r"topk\(",
    "cdist": r"cdist\(",
    "matmul-not-outer": r"einsum\(",
    "fuse": r"torch\.compile",
    "pad": r"pad\(",
    "sdpa": r"scaled_dot_product_attention\(",
    "index-not-one-hot": r"table\[",
    "pinned": r"pinned\((.|\n)*non_blocking=True",
    "pinned-results": "non_blocking=True",
    "stack-results": r"stack\(",
    "make-on-gpu": r"device=dev|torch\.device\(",
    "stay-on-gpu": "asinh",
    "read-once": r"stack\(|cat\(|double\(",
    "print-once": r"stack\(|printed",
    "keep-mask": r"where\(|masked_fill",
    "sync-in-loop": r"^(?!(.|\n)*synchronize)",
}
PROGRAMS = [
    *operators.PROGRAMS,
    *loops.PROGRAMS,
    *host.PROGRAMS,
    *tensor_lists.PROGRAMS,
    *turns.PROGRAMS,
    *iterables.PROGRAMS,
]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda one: one.name)
def test_a_program_is_named_and_edited(program: Program) -> None:
    changes, edits = advised(program)
    assert program.change in [one.name for one in changes[:2]]
    mark = MARKS.get(program.change, "")
    edits = [one for one in edits if one.name == program.change]
    edits = [one for one in edits if re.search(mark, one.code)]
    # where the host reads, some are of what is an array already
    is_of_host = program in (*host.PROGRAMS, *turns.PROGRAMS, *iterables.PROGRAMS)
    tried = edits if is_of_host else edits[:1]
    assert "agrees" in [outcome(program, one) for one in tried]


@pytest.mark.parametrize(
    "program", [*operators.KEPT, *turns.KEPT, *iterables.KEPT], ids=lambda one: one.name
)
def test_a_near_miss_stays(program: Program) -> None:
    _, edits = advised(program)
    assert program.change not in [one.name for one in edits]


@pytest.mark.parametrize(
    "program",
    [*operators.NEEDED, *loops.NEEDED, *host.NEEDED, *tensor_lists.NEEDED],
    ids=lambda one: one.name,
)
def test_what_is_needed_is_not_named(program: Program) -> None:
    changes, _ = advised(program)
    assert program.change not in [one.name for one in changes]
