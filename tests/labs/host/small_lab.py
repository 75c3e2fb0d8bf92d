"""A small lab on host code, and the referee that grades it without a GPU."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from warpbook_labs.cases.sampling import DrawnCase, hidden_cases, public_cases
from warpbook_labs.engines.host.lane import Bounds, HostRequest
from warpbook_labs.gpu import parent
from warpbook_labs.lab.loaded import LoadedLab
from warpbook_labs.lab.loader import load

TOML = """
id = "halves"
number = 903
title = "Halves"
track = "streams"
goal = "Have two results."
asks = "out[i] = factor * x[i] + 1, and whole is x as whole numbers."
language = "host"
tolerance = "Exact: whole numbers."
parameters = [
    { name = "x", kind = "input", dtype = "float32", shape = ["n"], place = "pinned" },
    { name = "factor", kind = "scalar", dtype = "float32" },
    { name = "out", kind = "output", dtype = "float32", shape = ["n"] },
    { name = "whole", kind = "output", dtype = "int32", shape = ["n"], place = "host" },
    { name = "n", kind = "size" },
]
public = [
    { about = "ten", sizes = { n = 10 }, values = "random" },
    { about = "more", sizes = { n = 3000 }, values = "random", seed = 3 },
]

[host]
without_gpu = "torch"
calls = 3

[hidden]
values = ["random"]
drawn = 1
sizes.n = { always = [1, 257], least = 2, most = 999 }

[speed]
sizes = { n = 200000 }
of_baseline = 0.9
calls = 2
"""
CASES = """
import numpy as np


def inputs(sizes, values, rng):
    drawn = rng.integers(-1000, 1000, sizes["n"])
    return {"x": drawn.astype(np.float32), "factor": float(rng.integers(2, 9))}


def expected(given, sizes):
    exact = given["x"].astype(np.float64)
    return {"out": given["factor"] * exact + 1, "whole": exact.astype(np.int64)}


def tolerance(given, sizes, right):
    return {"out": 0.0, "whole": 0}
"""
GIVEN = """
def plus_one(x):
    return x + 1
"""
STARTER = """
def prepare(n):
    return None


def run(state, x, factor, out, whole):
    pass
"""
RIGHT = """
import torch
from given import plus_one


def prepare(n):
    return torch.empty(n)


def run(state, x, factor, out, whole):
    out.copy_(plus_one(x * factor))
    whole.copy_(x)
"""
#: right as well, but most of its time is the GPU's, so that a slow host changes nothing
ON_THE_GPU = """
import torch
from given import plus_one

PRODUCTS = {products}


def prepare(n):
    return torch.ones(2048, 2048, device="cuda")


def run(state, x, factor, out, whole):
    for _ in range(PRODUCTS):
        state @ state
    out.copy_(plus_one(x * factor))
    whole.copy_(x)
"""
#: short, since what hangs is waited for, and long enough for a machine that is busy
BOUNDS = Bounds(run_s=4.0, prepare_s=10.0, memory_bytes=600 << 20, threads=64)


def write_lab(
    folder: Path, all_on_device: bool = False, n: int = 200_000, calls: int = 2
) -> LoadedLab:
    """Write it into a folder, and load it.

    Args:
        folder: where to.
        all_on_device: of the buffers, which else are in each of the places.
        n: what is timed.
        calls: of a timed unit.
    """
    at = folder / "halves"
    toml = TOML.replace("n = 200000", f"n = {n}")
    toml = toml.replace("calls = 2", f"calls = {calls}")
    if all_on_device:
        for place in ("pinned", "host"):
            toml = toml.replace(f'place = "{place}"', 'place = "device"')
    texts = {
        "lab.toml": toml,
        "cases.py": CASES,
        "given.py": GIVEN,
        "text.md": "# Halves",
        "hints.md": "Add.\n\n---\n\nMultiply.",
        "starter.py": STARTER,
        "reference.py": RIGHT,
        "solutions/correct/a.py": RIGHT + "\n# another\n",
        "solutions/correct/b.py": RIGHT + "\n# a third\n",
        "solutions/wrong/a.py": STARTER,
    }
    for name, text in texts.items():
        (at / name).parent.mkdir(parents=True, exist_ok=True)
        (at / name).write_text(text, encoding="utf-8")
    return load(at)


def heard(
    loaded: LoadedLab,
    source: str,
    is_timed: bool = True,
    cases: list[DrawnCase] | None = None,
    is_staged: bool = False,
    bounds: Bounds = BOUNDS,
    until: Callable[[], object] | None = None,
) -> parent.WorkerReport:
    """Have the real referee grade a source, with the CPU as the device."""
    if cases is None:
        cases = public_cases(loaded.lab) + hidden_cases(loaded.lab, 7)[:1]
    request = HostRequest(
        str(loaded.folder),
        source,
        tuple(cases),
        is_timed,
        has_gpu=False,
        is_staged=is_staged,
        bounds=bounds,
        is_held=until is not None,
        least_pairs=8,
        most_pairs=16,
    )
    module = "warpbook_labs.engines.host.worker"
    return parent.run(request, "", 200, module, until)


def failures(done: parent.WorkerReport) -> list[str]:
    """Give what failed, in words."""
    said = [tried.result.message for tried in done.tried if not tried.result.passed]
    if done.problem:
        said.append(done.problem)
    if done.ended is not None and done.ended.message:
        said.append(done.ended.message)
    return said
