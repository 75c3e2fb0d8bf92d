"""A cell whose bottleneck an expert knows, and the row that is kept of its verdict."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from tests.gpu.notebook import Notebook

#: each cell starts from it, whatever ran before in the same kernel
_FRESH = """
import time, torch
torch.set_float32_matmul_precision("highest")
torch.cuda.empty_cache()

def fastest_s(work):
    times = []
    for _ in range(5):
        torch.cuda.synchronize()
        began = time.perf_counter()
        work()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - began)
    return min(times)
"""
HEADER = (
    "| cell | why an expert says so | verdict | share of the window by kind | busy | "
    "launches matched |\n|---|---|---|---|---|---|"
)


@dataclass(frozen=True)
class Bottleneck:
    """A cell and what holds it back."""

    name: str
    kind: str
    #: why an expert says so
    why: str
    setup: str
    cell: str
    #: a pattern that the verdict's sentence holds
    says: str = ""
    #: what it is on a slower or faster host
    other_kind: str = ""


def judge(notebook: Notebook, known: Bottleneck) -> tuple[str, list[str]]:
    """Profile the cell; give its row of the table, and what is wrong with it."""
    # once as it is: libraries are loaded and memory is taken once
    notebook.run(f"{_FRESH}\n{known.setup}\n{known.cell}\ntorch.cuda.synchronize()")
    profile = notebook.profile(known.cell)
    verdict, complete = profile["verdict"], profile["completeness"]
    wrong = []
    if verdict is None or verdict["kind"] not in (known.kind, known.other_kind):
        wrong.append(f"the verdict is {verdict}, not {known.kind}")
    elif not re.search(known.says, verdict["sentence"]):
        wrong.append(f"{verdict['sentence']!r} does not say {known.says!r}")
    if complete["matched"] != complete["launches"]:
        wrong.append(f"launches are missing: {complete}")
    return _row(known, profile), wrong


def _row(known: Bottleneck, profile: dict[str, Any]) -> str:
    shares: dict[str, float] = {}
    for finding in profile["findings"]:
        shares[finding["kind"]] = shares.get(finding["kind"], 0.0) + finding["share"]
    verdict, complete = profile["verdict"] or {}, profile["completeness"]
    busy = (profile["gpu_busy_ns"] or 0) / profile["wall_ns"]
    cells = [
        known.name,
        known.why,
        verdict.get("kind", "none"),
        ", ".join(f"{kind} {share:.0%}" for kind, share in shares.items()) or "-",
        f"{busy:.0%}",
        f"{complete['matched']:,} of {complete['launches']:,}",
    ]
    return f"| {' | '.join(cells)} |"
