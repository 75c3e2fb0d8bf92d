"""Sources that look like an edit's own, and whose edit would compute something else."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.profiler.advice.program import Cell, changes_of
from tests.profiler.advice.test_model_patterns import decodes, weighs
from tests.profiler.advice.test_patterns_of_data import becomes, makes, pinned
from tests.profiler.advice.test_prefetch_code import in_turns
from tests.profiler.advice.test_training_patterns import (
    CLIP,
    averages,
    clips,
    infers,
    trains,
)
from warpbook_profiler.advice.code.cell_code import CellCode
from warpbook_profiler.advice.code.no_edit import why_no_edit
from warpbook_profiler.advice.proposal import Rule
from warpbook_profiler.model.change import Change
from warpbook_profiler.techniques.data.lists import lists
from warpbook_profiler.techniques.data.made_on_host import made_on_host
from warpbook_profiler.techniques.data.pinned_waits import pinned_waits
from warpbook_profiler.techniques.data.prefetch import prefetch
from warpbook_profiler.techniques.models.checkpointing import checkpoint_off
from warpbook_profiler.techniques.models.foreach_clip import foreach_clip
from warpbook_profiler.techniques.models.foreach_ema import foreach_ema
from warpbook_profiler.techniques.models.inference import no_autograd
from warpbook_profiler.techniques.models.need_weights import need_weights
from warpbook_profiler.techniques.models.static_cache import static_cache

COPY = "for p in parts:\n    place.copy_(p)\n    {}\n"
LIST = "for r in rows:\n    {}t = torch.tensor(r{})\n"
INDEX = "for i in range(60):\n    t = torch.tensor(rows[i]{}, device=dev)\n    {}\n"
EMA = "for old, new in zip(a, b):\n    {}\nf()\n"
LERP = ("aten::lerp_",)
DECODES = "for t in range(10**9):\n    k = torch.cat([k, q], 2)\n    if {}: break\n"
TURNS = "for b in it:\n    x = b.to(dev)\n    if f(x): break\n"


def reads_back() -> Cell:
    cell = pinned(COPY.format("host.copy_"))
    cell.copy("DtoH", 4_096)
    return cell


def unlike(cell: Cell) -> Cell:
    """Have all second operands be tensors, of another dtype."""
    for event in cell.events:
        match event["args"]:
            case {"Input Dims": [first, second], "Input type": types} as args:
                args["Input Dims"] = first, second or (1,)
                types[1] = "c10::BFloat16"
    return cell


@pytest.mark.parametrize(
    ("rule", "cell"),
    [
        (pinned_waits, pinned(COPY.format("host.copy_(y)"))),
        (pinned_waits, reads_back()),
        (lists, becomes(LIST.format("", ", device=dev, requires_grad=True"))),
        (lists, becomes(LIST.format("shuffle(r); ", ", device=dev"))),
        (lists, becomes(INDEX.format("", "rows[i + 1] = f(t)"))),
        (lists, becomes(INDEX.format(", dtype=kinds[i]", "f(t)"))),
        (prefetch, in_turns(TURNS)),
        (
            made_on_host,
            makes("m = torch.ones(8)\nz = f()\ny = m.to(z.device)", "aten::ones"),
        ),
        (made_on_host, makes("m = torch.ones(8).to(kind).to(dev)", "aten::ones")),
        (need_weights, weighs("o, _ = mha(q, k, v)\nh, _ = lstm(x, a, b)\nf()")),
        (need_weights, weighs("o = torch.topk(x, 3, 1)[0]\nf()")),
        (foreach_ema, averages(EMA.format("out[i] = old.lerp_(new, w)"), LERP, 100)),
        (foreach_ema, unlike(averages(EMA.format("old.lerp_(new, w)"), LERP, 100))),
        (foreach_clip, unlike(clips(CLIP, 200))),
        (
            static_cache,
            decodes(True, True, 80_000, DECODES.format("k.mul_(2).sum() > 9")),
        ),
    ],
)
def test_what_would_compute_something_else_has_no_edit(
    tmp_path: Path, rule: Rule, cell: Cell
) -> None:
    assert not any(
        change.code for change in changes_of(rule, cell.evidence(tmp_path)).values()
    )


@pytest.mark.parametrize(
    ("rule", "cell", "text"),
    [
        (
            foreach_ema,
            averages(EMA.format("old = old.lerp_(new, w)"), LERP, 100),
            "_foreach_lerp_",
        ),
        (
            made_on_host,
            makes("def f(gpu): return torch.ones(8).to(gpu)", "aten::ones"),
            "ones(8, device=gpu)",
        ),
        (
            checkpoint_off,
            trains(True, 500_000, "h = checkpoint(f, h, use_reentrant=False, **kw)"),
            "h = f(h, **kw)",
        ),
        (
            no_autograd,
            infers("%%time\nloss = net(x)\n", True, 3_000),
            "%%time\nimport torch\nwith torch.no_grad():\n    loss = net(x)\n",
        ),
    ],
)
def test_what_is_written_keeps_all_that_the_cell_has(
    tmp_path: Path, rule: Rule, cell: Cell, text: str
) -> None:
    (change,) = changes_of(rule, cell.evidence(tmp_path)).values()
    assert text in change.code


@pytest.mark.parametrize(
    ("source", "line", "why"),
    [
        ("for x in xs:\n    y.append(f(x))\n", 2, "loop on line 1 calls f, which"),
        ("ys = [f(x) for x in xs]\n", 1, "loop on line 1 calls f, which"),
        ("for a in b:\n  for x in xs:\n    f(x)\n", 3, "loop on line 1 calls f,"),
        ("z = g(1)\nfor x in xs:\n    y.append(x)\n", 3, ""),
        ("def f(x): pass\nfor x in xs:\n    f(x)\n", 3, ""),
        ("from m import f\nfor x in xs:\n    f(len(x))\n", 3, ""),
        ("y = f(x)\n", 1, ""),
        ("y = f(x)\n", None, "no line of the cell is known to do it"),
        ("y = = f(x)\n", 1, "the cell's source can't be read"),
    ],
)
def test_why_there_is_no_edit_is_told_where_the_source_shows_it(
    source: str, line: int | None, why: str
) -> None:
    unknown = (None,) * 5
    change = Change("whole-tensor", "", "", "unknown", *unknown, "", "", line=line)
    told = why_no_edit(change, CellCode(source))
    assert told == why if not why else why in told
