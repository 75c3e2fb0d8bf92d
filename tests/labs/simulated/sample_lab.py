"""A small lab on host code, for PyTorch on the CPU or the simulated GPU."""

from __future__ import annotations

from pathlib import Path

TOML = """
id = "scaled-sums"
number = 902
title = "Scaled sums"
track = "streams"
goal = "Have one buffer depend on another."
asks = "out[i] = factor * (x[i] + y[i]), and y counts the calls."
language = "host"
tolerance = "Exact: whole numbers."
parameters = [
    {{ name = "x", kind = "input", dtype = "float32", shape = ["n"], {place} }},
    {{ name = "y", kind = "inout", dtype = "int32", shape = ["n", "2"] }},
    {{ name = "factor", kind = "scalar", dtype = "float32" }},
    {{ name = "out", kind = "output", dtype = "float32", shape = ["n"] }},
    {{ name = "n", kind = "size" }},
]
public = [
    {{ about = "ten", sizes = {{ n = 10 }}, values = "random" }},
    {{ about = "more", sizes = {{ n = 1000 }}, values = "small", seed = 3 }},
]

[host]
without_gpu = "{without_gpu}"
calls = 2
case_s = 2.0

[hidden]
values = ["random", "small"]
drawn = 1
sizes.n = {{ always = [1, 257], least = 2, most = 999 }}
{more}
"""
CASES = """
import numpy as np


def inputs(sizes, values, rng):
    n, most = sizes["n"], 100 if values == "random" else 3
    return {
        "x": rng.integers(-most, most, n).astype(np.float32),
        "y": rng.integers(0, most, (n, 2)),
        "factor": float(rng.integers(2, 9)),
    }


def expected(given, sizes):
    rows = given["y"].astype(np.float64)
    return {
        "out": given["factor"] * (given["x"].astype(np.float64) + rows[:, 0]),
        "y": given["y"] + 1,
    }


def tolerance(given, sizes, right):
    return {"out": 0.0, "y": 0}
"""
GIVEN = """
def total(x, y):
    return x + y[:, 0]
"""
STARTER = """
def prepare(n):
    return None


def run(state, x, y, factor, out):
    pass
"""
RIGHT = """
import torch
from given import total


def prepare(n):
    return {"calls": 0, "sums": torch.empty(n, device=DEVICE)}


def run(state, x, y, factor, out):
    state["calls"] += 1
    sums = state["sums"]
    sums.copy_(total(x.to(sums.device), y))
    out.copy_(sums * factor)
    y.add_(1)
"""
WRONG = RIGHT.replace("y.add_(1)", "y.add_(state['calls'])")


def write_lab(
    folder: Path, without_gpu: str = "torch", place: str = "device", more: str = ""
) -> Path:
    """Write it into a folder; give its own."""
    device = '"cuda"'
    if without_gpu == "torch":
        device += ' if torch.cuda.is_available() else "cpu"'
    right, wrong = (source.replace("DEVICE", device) for source in (RIGHT, WRONG))
    at = folder / "scaled_sums"
    place = f'place = "{place}"'
    texts = {
        "lab.toml": TOML.format(without_gpu=without_gpu, place=place, more=more),
        "cases.py": CASES,
        "given.py": GIVEN,
        "text.md": "# Scaled sums",
        "hints.md": "Add.\n\n---\n\nMultiply.",
        "starter.py": STARTER,
        "reference.py": right,
        "solutions/correct/a.py": right + "\n# another\n",
        "solutions/wrong/counted.py": wrong,
    }
    for name, text in texts.items():
        (at / name).parent.mkdir(parents=True, exist_ok=True)
        (at / name).write_text(text, encoding="utf-8")
    return at
