"""The names that advice takes from a cell's source."""

from __future__ import annotations

import pytest

from tests.profiler.advice.exam_changes import changes_of
from warpbook_profiler.advice.code.cell_code import CellCode


@pytest.mark.parametrize(
    ("source", "model"),
    [
        ("for x, y in data:\n    loss = criterion(net(x), y)", "net"),
        ("warm(x)\nfor x in data:\n    print(len(x))\n    net(x)", "net"),
        ("with profiler(1):\n    y = net(x)", "net"),
        ("seen = defaultdict(list)\ny = net(x)", "net"),
        ("rest = deque(xs, 9)\nstep = partial(f, 3)\nbest = deepcopy(net)", None),
        ("for x in batches(xs):\n    y = [net(z) for z in parts(x)]", "net"),
        ("y = torch.relu(x)\nprint(y)\nz = Linear(4)\nstart()", None),
        (None, None),
    ],
)
def test_the_model_of_a_source(source: str | None, model: str | None) -> None:
    call = CellCode(source).model_call()
    assert (call and call.name) == model


@pytest.mark.parametrize("terms", [300, 3_000])
@pytest.mark.parametrize(
    ("name", "source", "change"),
    [
        ("boolean_masks", "for x in xs:\n    y = x[x > 0].sum()", "keep-mask"),
        (
            "loss_item_each_step",
            "for x in xs:\n    t += x.item()\n    y = x",
            "read-once",
        ),
        ("wait_on_side_stream", "s.wait_stream(t)\ny = a", "one-stream"),
        ("product_of_odd_sizes", "y = a @ b", "pad"),
    ],
)
def test_code_nested_deeply_stops_no_advice(
    name: str, source: str, change: str, terms: int
) -> None:
    assert change in changes_of(name, source + " + a" * terms)
