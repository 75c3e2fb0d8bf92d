"""Operations on cards, and what a roofline says of them.

Arithmetic and least traffic come from the models that reports of cells use, too.
"""

from __future__ import annotations

import math
import random
from typing import Any

from warpbook_labs.lab.python.questions import Question
from warpbook_profiler.events.columns import Operands
from warpbook_profiler.facts.flops import model
from warpbook_profiler.facts.traffic import least_bytes
from warpbook_profiler.model.ceilings import ceilings

Numbers = dict[str, Any]
_DTYPES = {"float32": "float", "float16": "c10::Half", "int8": "signed char"}
_CARDS = ("H200", "H100 PCIe", "A100-SXM4-80GB", "L40S", "L4", "T4")
_POINTWISE = {"copy": "aten::copy_", "add": "aten::add", "gelu": "aten::gelu"}
_ROWS = {"row_sum": "aten::sum", "softmax": "aten::_softmax"}
#: links as they are advertised
_LINKS = (
    {"name": "NVLink of an H200", "bytes_per_s": 900e9, "counts": "both ways"},
    {"name": "NVLink of an A100", "bytes_per_s": 600e9, "counts": "both ways"},
    {"name": "PCIe 5.0 x16", "bytes_per_s": 64e9, "counts": "one way"},
    {"name": "PCIe 4.0 x16", "bytes_per_s": 32e9, "counts": "one way"},
    {"name": "InfiniBand NDR", "bytes_per_s": 50e9, "counts": "one way"},
)
#: what a right answer may be off by: counts are exact, so that a term that was left out
#: shows, however small it is
_EXACT, _TIME = 1e-9, 0.25
#: closer to the ridge than this, nobody is asked which side it is
_CLEAR = 1.3


def _work(operation: Numbers) -> tuple[float, float]:
    """Give arithmetic and least bytes."""
    kind, dtype = operation["kind"], _DTYPES[operation["dtype"]]

    def operands(*dims: tuple[int, ...], scalars: tuple[str, ...] = ()) -> Operands:
        return Operands(dims, (dtype,) * len(dims), scalars)

    def product(name: str, called: Operands) -> tuple[float, float]:
        work = model(name, called)
        if work is None or work.size_bytes is None:
            raise ValueError(f"{name} is not modelled")
        return work.flops, work.size_bytes

    of = operation.__getitem__
    if kind in _POINTWISE:
        elements = of("elements")
        dims = ((elements,),) * (1 if kind == "gelu" else 2)
        moved = least_bytes(_POINTWISE[kind], operands(*dims))
        return operation["flops_each"] * elements, float(moved or 0)
    if kind in _ROWS or kind == "transpose":
        rows, columns = of("rows"), of("columns")
        called = operands((rows, columns))
        if kind == "row_sum":
            called = operands((rows, columns), (rows,))
        if kind == "transpose":
            called = operands((rows, columns), (columns, rows))
        moved = least_bytes(_ROWS.get(kind, "aten::copy_"), called)
        return operation["flops_each"] * rows * columns, float(moved or 0)
    if kind == "matvec":
        return product("aten::mv", operands((of("m"), of("k")), (of("k"),)))
    if kind == "matmul":
        return product("aten::mm", operands((of("m"), of("k")), (of("k"), of("n"))))
    if kind == "batched_matmul":
        left = (of("batch"), of("m"), of("k"))
        return product("aten::bmm", operands(left, (of("batch"), of("k"), of("n"))))
    if kind == "conv2d":
        picture = (of("batch"), of("channels"), of("height"), of("width"))
        weight = (of("filters"), of("channels"), of("kernel"), of("kernel"))
        pad = of("kernel") // 2
        scalars = ("", "", "", "[1, 1]", f"[{pad}, {pad}]", "[1, 1]", "False")
        called = operands(picture, weight, scalars=(*scalars, "[0, 0]", "1"))
        return product("aten::convolution", called)
    query = (of("batch"), of("heads"), of("queries"), of("head_dim"))
    key = (of("batch"), of("kv_heads"), of("keys"), of("head_dim"))
    called = operands(query, key, key, scalars=("", "", "", "0.0", "False"))
    return product("aten::_scaled_dot_product_flash_attention", called)


def _times(operation: Numbers, card: Numbers) -> tuple[float, float]:
    """Give the seconds of its traffic and of its arithmetic."""
    arithmetic, moved = _work(operation)
    peak = card["flops_per_s"][operation["dtype"]]
    return moved / card["bytes_per_s"], arithmetic / peak


def questions(rng: random.Random) -> list[Question]:
    """Draw one operation of each kind on a card, and some near the ridge."""
    drawn = []
    for kind, operation in _operations(rng):
        card = _card(rng)
        drawn.append(Question("flops", {"operation": operation}, kind))
        drawn.append(Question("least_bytes", {"operation": operation}, kind))
        given = {"operation": operation, "card": card}
        drawn.append(Question("seconds", given, kind))
        memory_s, compute_s = _times(operation, card)
        if max(memory_s, compute_s) > _CLEAR * min(memory_s, compute_s):
            drawn.append(Question("bound", given, kind))
    for side in ("memory", "compute"):
        for dtype in ("float32", "int8"):
            given = _near_the_ridge(side, dtype, rng)
            drawn.append(Question("bound", given, "a matmul near the ridge"))
            drawn.append(Question("seconds", given, "a matmul near the ridge"))
    for _ in range(2):
        drawn.append(Question("times_faster", _links(rng), "two links"))
    return drawn


def _card(rng: random.Random) -> Numbers:
    """Take a product's datasheet, or a card that nobody has heard of."""
    name = rng.choice(_CARDS)
    sheet = ceilings(name)
    if sheet is None:
        raise ValueError(f"{name} has no datasheet")
    faster, wider = 1.0, 1.0
    if rng.random() < 0.5:
        name = "a card to come"
        faster, wider = rng.uniform(1, 4), rng.uniform(1, 4)
    return {
        "name": name,
        "bytes_per_s": round(sheet.memory_bytes_per_s * wider),
        "flops_per_s": {
            dtype: round(sheet.flops_per_s[torch] * faster)
            for dtype, torch in _DTYPES.items()
        },
    }


def _operations(rng: random.Random) -> list[tuple[str, Numbers]]:
    """Draw sizes that differ from each other, so that no two can be mixed up."""

    def size(least: int, most: int) -> int:
        return rng.randint(least, most) * 8

    def dtype() -> str:
        return rng.choice(list(_DTYPES))

    head_dim = rng.choice((64, 128))
    shared = rng.choice((4, 8))
    heads = shared * rng.choice((4, 8))
    plain: dict[str, Numbers] = {
        "copy": {"elements": size(10**5, 10**7), "flops_each": 0},
        "add": {"elements": size(10**5, 10**7), "flops_each": 1},
        "gelu": {"elements": size(10**5, 10**7), "flops_each": 10},
        "row_sum": {"rows": size(100, 999), "columns": size(300, 999), "flops_each": 1},
        "softmax": {"rows": size(100, 999), "columns": size(300, 999), "flops_each": 5},
        "transpose": {
            "rows": size(100, 999),
            "columns": size(100, 999),
            "flops_each": 0,
        },
        "matvec": {"m": size(300, 2000), "k": size(300, 2000)},
        "matmul": {"m": size(300, 800), "n": size(300, 800), "k": size(300, 800)},
        "batched_matmul": {
            "batch": size(8, 64),
            "m": size(2, 6),
            "n": size(8, 16),
            "k": size(4, 12),
        },
        "conv2d": {
            "batch": size(1, 8),
            "channels": size(4, 32),
            "height": size(4, 12),
            "width": size(4, 12),
            "filters": size(4, 32),
            "kernel": rng.choice((3, 5)),
        },
    }
    attention = {"batch": size(1, 4), "heads": heads, "kv_heads": heads // shared}
    keys = size(256, 1024)
    operations = [
        (kind.replace("_", " "), {"kind": kind, "dtype": dtype(), **sizes})
        for kind, sizes in plain.items()
    ]
    for about, queries in (("attention over a prompt", keys), ("one token's", 1)):
        sizes = {**attention, "queries": queries, "keys": keys, "head_dim": head_dim}
        operation = {"kind": "attention", "dtype": "float16", **sizes}
        operations.append(
            (about if queries > 1 else "attention of one new token", operation)
        )
    return operations


def _near_the_ridge(side: str, dtype: str, rng: random.Random) -> Numbers:
    """Look for a matmul for which memory and arithmetic take nearly as long."""
    while True:
        sizes = {name: rng.randint(16, 4096) for name in "mnk"}
        operation = {"kind": "matmul", "dtype": dtype, **sizes}
        card = _card(rng)
        memory_s, compute_s = _times(operation, card)
        ratio = memory_s / compute_s if side == "memory" else compute_s / memory_s
        if _CLEAR < ratio < 1.8:
            return {"operation": operation, "card": card}


def _links(rng: random.Random) -> Numbers:
    """Draw two links that are advertised in different ways."""
    both = [link for link in _LINKS if link["counts"] == "both ways"]
    one = [link for link in _LINKS if link["counts"] == "one way"]
    pair = [rng.choice(both), rng.choice(one)]
    rng.shuffle(pair)
    return {"first": pair[0], "second": pair[1]}


def judge(question: Question, answer: Any) -> str:
    """Hold an answer against the roofline."""
    given = question.arguments
    if question.function == "times_faster":
        first, second = (_one_way(given[way]) for way in ("first", "second"))
        return _off(answer, first / second, _EXACT, "times")
    arithmetic, moved = _work(given["operation"])
    if question.function == "flops":
        return _off(answer, arithmetic, _EXACT, "operations")
    if question.function == "least_bytes":
        return _off(answer, moved, _EXACT, "bytes")
    memory_s, compute_s = _times(given["operation"], given["card"])
    if question.function == "seconds":
        return _off(answer * 1e6, max(memory_s, compute_s) * 1e6, _TIME, "µs")
    right = "memory" if memory_s > compute_s else "compute"
    if answer == right:
        return ""
    return (
        f"Returned {answer[:20]!r}; expected {right!r}: its bytes take "
        f"{memory_s * 1e6:,.3g} µs, its arithmetic {compute_s * 1e6:,.3g} µs."
    )


def _one_way(link: Numbers) -> float:
    shared = 2 if link["counts"] == "both ways" else 1
    return float(link["bytes_per_s"] / shared)


def _off(answer: float, right: float, share: float, unit: str) -> str:
    if math.isclose(answer, right, rel_tol=0, abs_tol=share * abs(right)):
        return ""
    if share == _EXACT:
        return f"Returned {answer:,.12g} {unit}; expected {right:,.12g}."
    within = f"within {100 * share:.0f} %"
    return f"Returned {answer:,.4g} {unit}; expected {right:,.4g}, {within}."
