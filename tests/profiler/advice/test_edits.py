"""Edits of the exam's cells, run on the CPU beside the cells themselves."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tests.gpu.exam.agreement import differences, outputs
from tests.profiler.advice.exam_changes import CELLS, changes_of

_ROWS = "x = torch.randn(9, 16)\ny = torch.empty_like(x)"
#: by cell and change: a setup that is as small as a test is
_SETUPS = {
    ("rows_one_by_one", "whole-tensor"): _ROWS,
    ("heads_one_by_one", "whole-tensor"): (
        "a, b = torch.randn(2, 8, 4, 4)\ny = torch.empty_like(a)"
    ),
    ("item_before_work_of_the_host", "read-once"): (
        "w = torch.randn(8, 8)\nxs = torch.randn(5, 8, 8)"
    ),
    ("loss_item_each_step", "read-once"): (
        "m = nn.Linear(8, 2)\no = torch.optim.SGD(m.parameters(), 1e-2)\n"
        "xs = torch.randn(5, 4, 8)"
    ),
    ("boolean_masks", "keep-mask"): "xs = torch.randn(5, 64)",
    ("indices_from_nonzero", "keep-mask"): "xs = torch.randn(5, 64)",
    ("growing_cat", "cat-once"): "parts = [torch.randn(4, 2) for _ in range(9)]",
    ("tensor_printed_each_step", "print-once"): "x = torch.randn(16, 8)",
    ("gelu_by_hand", "fuse"): "x = torch.randn(16, 8)",
    ("swiglu_by_hand", "fuse"): "gate, up = torch.randn(2, 16, 8)",
    ("softmax_by_hand", "fuse"): "x = torch.randn(16, 8)",
    ("layernorm_by_hand", "fuse"): (
        "x = torch.randn(16, 8)\nweight, bias = torch.randn(2, 8)"
    ),
    ("attention_by_hand", "sdpa"): "q = torch.randn(2, 3, 16, 64)",
    ("attention_by_hand_in_fp32", "sdpa"): (
        "q, k, v = (torch.randn(2, 3, 16, 64) for _ in range(3))"
    ),
    ("masked_attention_by_hand", "sdpa"): (
        "q, k, v = (torch.randn(2, 3, 16, 64) for _ in range(3))\n"
        "future = torch.ones(16, 16, dtype=torch.bool).triu(1)"
    ),
    ("small_operations_in_a_row", "cuda-graph"): "x = torch.randn(16)",
    ("lstm_cell_by_cell", "whole-lstm"): (
        "lstm_cell = nn.LSTMCell(8, 256)\nxs = torch.randn(9, 64, 8)"
    ),
    ("round_trip_by_the_cpu", "stay-on-gpu"): "x = torch.randn(16)",
    ("adam_loop_over_tensors", "fused-optimizer"): (
        "ps = [nn.Parameter(torch.randn(4)) for _ in range(3)]\n"
        "for p in ps:\n    p.grad = torch.randn_like(p)\n"
        "o = torch.optim.AdamW(ps, foreach=False, fused=False)"
    ),
    ("product_of_odd_sizes", "pad"): "a, b = torch.randn(2, 9, 9)",
    ("fp64_products_by_accident", "float32"): "a, b = torch.randn(2, 9, 9).double()",
    ("fp32_linear_stack", "tf32"): "m = nn.Linear(8, 8)\nx = torch.randn(4, 8)",
    ("deterministic_algorithms", "nondeterministic"): (
        "index = torch.randint(0, 9, (64,))\nsource = torch.randn(64, 16)"
    ),
    ("anomaly_mode", "no-anomaly-mode"): "m = nn.Linear(8, 8)\nx = torch.randn(4, 8)",
}


def run(setup: str, source: str) -> dict[str, Any]:
    torch.manual_seed(0)
    namespace: dict[str, Any] = {"torch": torch, "nn": torch.nn, "dev": "cpu"}
    exec(f"import torch.nn.functional as F\n{setup}", namespace)
    torch.manual_seed(0)
    return outputs(source, namespace)


@pytest.mark.parametrize(("name", "change"), _SETUPS)
def test_an_edit_computes_what_its_cell_does(name: str, change: str) -> None:
    cell, setup = CELLS[name], _SETUPS[name, change]
    code = changes_of(name, cell.slow.strip())[change].code
    assert code
    before = run(setup, cell.slow.strip())
    # what the compiler makes of it is seen on a GPU
    after = run(setup, code.replace("    @torch.compile\n", ""))
    assert before.keys() & after.keys()
    assert not differences(before, after, change, cell.slow.strip())
    torch.set_float32_matmul_precision("highest")


@pytest.mark.parametrize(
    ("source", "is_edited"),
    [
        ("for _ in range(9):\n    y = m(x)\n    s = y.sum()", True),
        # a graph writes to the memory of its last result
        ("for _ in range(9):\n    kept.append(m(x))", False),
        ("for _ in range(9):\n    y = m(x)\n    kept.append(y[0])", False),
        ("ys = [m(x) for _ in range(9)]", False),
        ("for t in range(9):\n    y = m(x)\n    best = y if t == 0 else best", False),
        ("for _ in range(9):\n    h = m(h)", False),
        ("m = Net()\nfor _ in range(9):\n    y = m(x)", False),
        ("y = m(x)\nz = m(y - y.mean(0))", False),
        ("for _ in range(9):\n    y = m(x) - m(x + 1)", False),
    ],
)
def test_calls_are_graphs_where_no_result_outlives_the_next(
    source: str, is_edited: bool
) -> None:
    code = changes_of("small_mlp", source)["cuda-graph"].code
    assert ('mode="reduce-overhead"' in code) == is_edited


@pytest.mark.parametrize(
    ("name", "change", "source", "result"),
    [
        (
            "loss_item_each_step",
            "read-once",
            "kept = []\nfor x in xs:\n    kept.append(m(x).item())",
            "import torch\nkept = []\nfor x in xs:\n"
            "    kept.append(m(x).detach().clone().reshape(1))\n"
            "kept = torch.cat(kept).tolist() if kept else []",
        ),
        (
            "loss_item_each_step",
            "read-once",
            "n = 0\nfor x in xs:\n    n += (m(x) > 0).sum().item()",
            "import torch\nn = 0\nfor x in xs:\n    n += (m(x) > 0).sum().detach()\n"
            "n = torch.as_tensor(n).item()",
        ),
        # what the loop has so far is used, and more may be in the list
        (
            "loss_item_each_step",
            "read-once",
            "t = 0.0\nfor x in xs:\n    t += m(x).item()\n    print(t)",
            "",
        ),
        (
            "loss_item_each_step",
            "read-once",
            "for x in xs:\n    kept.append(m(x).item())",
            "",
        ),
        (
            "results_read_back_in_a_loop",
            "pinned-results",
            "outs = [f(x).cpu().numpy() for x in xs]",
            'import torch\nouts = [f(x).to("cpu", non_blocking=True).numpy() '
            "for x in xs]\ntorch.cuda.synchronize()",
        ),
        (
            "results_read_back_in_a_loop",
            "pinned-results",
            "for x in xs:\n    y = f(x).cpu()\n    n += y.sum()",
            "",
        ),
        (
            "results_read_back_in_a_loop",
            "pinned-results",
            "for x in xs:\n    outs.append(f(x).cpu())\n    show(outs[-1])",
            "",
        ),
        (
            "boolean_masks",
            "keep-mask",
            "for x in xs:\n    s = x[x > 0].mean() * 2",
            "import torch\nfor x in xs:\n"
            "    s = (torch.where(x > 0, x, 0).sum() / (x > 0).sum()) * 2",
        ),
        (
            "boolean_masks",
            "keep-mask",
            "for x in xs:\n    s = x[x > 0].sqrt().sum()",
            "",
        ),
        (
            "adam_loop_over_tensors",
            "fused-optimizer",
            "o = torch.optim.AdamW(ps, foreach=False)\no.step()",
            "o = torch.optim.AdamW(ps, foreach=None, fused=True)\no.step()",
        ),
    ],
)
def test_edits_of_other_cells(name: str, change: str, source: str, result: str) -> None:
    assert changes_of(name, source)[change].code.rstrip("\n") == result
