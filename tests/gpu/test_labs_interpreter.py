"""The interpreter of PTX beside a real GPU: results, and what ncu counts.

pytest -m gpu -s tests/gpu/test_labs_interpreter.py

The labs' own solutions are run by both. ncu replays each kernel in another process.
"""

from __future__ import annotations

import csv
import os
import shutil
import subprocess
import sys
from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from numpy.typing import NDArray

from tests.gpu.launch_cubins import Work
from warpbook_labs.cases import execution
from warpbook_labs.cases.preparation import Prepared
from warpbook_labs.cases.sampling import DrawnCase, hidden_cases, public_cases
from warpbook_labs.compiler.nvrtc import Compiled, compile_to_ptx
from warpbook_labs.engines.interpreter.jobs import Interpret, Interpreted, RunResult
from warpbook_labs.engines.interpreter.ptx.machine import running
from warpbook_labs.lab.launch_rule import read_rule
from warpbook_labs.lab.loaded import LoadedLab
from warpbook_labs.lab.loader import load_all
from warpbook_labs.results.findings import Counts

pytestmark = pytest.mark.gpu

HERE = Path(__file__).parent
SEED = 2026
GLOBAL, SHARED = "l1tex__t_{}_pipe_lsu_mem_global_op_{}.sum", "mem_shared_op_{}.sum"
GLOBAL_OPERATIONS = ("ld", "st", "atom", "red")
#: what ncu calls what the interpreter counts; all of a row are added up
METRICS = {
    "global_sectors": [GLOBAL.format("sectors", op) for op in GLOBAL_OPERATIONS],
    "global_requests": [GLOBAL.format("requests", op) for op in GLOBAL_OPERATIONS],
    "bank_conflicts": [
        f"l1tex__data_bank_conflicts_pipe_lsu_{SHARED.format(op)}"
        for op in ("ld", "st")
    ],
}
#: solutions that count much, right or wrong; others that are wrong may race
TELLING = (
    "vector-add/strided.cu",
    "area-codes/goes_down_columns.cu",
    "tiled-transpose/bank_conflicts.cu",
    "tiled-transpose/writes_down_columns.cu",
    "matmul/naive.cu",
)
#: of labs whose counts are not ncu's, how many times apart they may be: ptxas takes
#: loads out of loops, threads probe in another order, and ncu counts two numbers of
#: each compare-and-swap
TIMES_APART = {"groupby-join": 2.5}


@cache
def labs() -> dict[str, LoadedLab]:
    return load_all()


@cache
def sources() -> dict[str, tuple[str, str]]:
    """Give labs and sources by name: all that are right, and those that count much."""
    by_name = {}
    for name, loaded in labs().items():
        if loaded.lab.language == "cuda":
            by_name[f"{name}/reference.cu"] = (name, loaded.reference)
            for file, text in {**loaded.correct, **loaded.wrong}.items():
                if file in loaded.correct or f"{name}/{file}" in TELLING:
                    by_name[f"{name}/{file}"] = (name, text)
    return by_name


@cache
def architecture() -> str:
    command = ["nvidia-smi", "--query-gpu=compute_cap", "--format=csv,noheader"]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return f"sm_{output.splitlines()[0].replace('.', '')}"


@cache
def built(text: str) -> Compiled:
    return compile_to_ptx(text, architecture())


def prepared(name: str, case: DrawnCase) -> Prepared:
    lab, text = sources()[name]
    return Prepared(labs()[lab], read_rule(text), case)


def interpreted(name: str, run: execution.Run) -> RunResult:
    done = running.do(Interpret(built(sources()[name][1]).ptx, (run,)))
    assert isinstance(done, Interpreted)
    assert not done.runs[0].refused, f"{name}: {done.runs[0].refused}"
    return done.runs[0]


def launched(folder: Path, work: list[Work], *watcher: str) -> list[dict[str, bytes]]:
    """Do the work on the GPU."""
    (folder / "work.msgpack").write_bytes(msgspec.msgpack.encode(work))
    script = HERE / "launch_cubins.py"
    done = subprocess.run(
        [*watcher, sys.executable, str(script), str(folder)],
        capture_output=True,
        text=True,
        env={**os.environ, "TMPDIR": str(folder)},
        timeout=200,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    held = (folder / "held.msgpack").read_bytes()
    return msgspec.msgpack.decode(held, type=list[dict[str, bytes]])


def differing(ours: bytes, theirs: bytes, dtype: str) -> NDArray[np.int64]:
    """Find the elements that are not the same bits; one NaN is like another."""
    mine: NDArray[Any] = np.frombuffer(ours, dtype)
    gpus: NDArray[Any] = np.frombuffer(theirs, dtype)
    bits = f"u{mine.itemsize}"
    same = mine.view(bits) == gpus.view(bits)
    if mine.dtype.kind == "f":
        same |= np.isnan(mine) & np.isnan(gpus)
    return np.flatnonzero(~same)


def test_every_result_is_the_gpus_to_the_last_bit(tmp_path: Path) -> None:
    drawn = [
        (name, case)
        for name, (lab, _) in sources().items()
        for case in (
            *public_cases(labs()[lab].lab),
            *hidden_cases(labs()[lab].lab, SEED)[:6],
        )
    ]
    work = [
        Work(built(sources()[name][1]).cubin, prepared(name, case).run)
        for name, case in drawn
    ]
    held = launched(tmp_path, work)
    rows: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
    apart = []
    for (name, case), work_item, gpus in zip(drawn, work, held, strict=True):
        rows[name][0] += 1
        for memory in interpreted(name, work_item.run).memory:
            assert memory.data is not None
            at = differing(
                memory.data, gpus[memory.name], memory_dtype(work_item, memory)
            )
            rows[name][1] += len(gpus[memory.name]) // 4
            rows[name][2] += len(at)
            if len(at):
                apart.append(f"{name}, {case.about}: {memory.name}[{at[0]}]")
    print("\n| solution | cases | elements of 4 bytes | unlike the GPU's |")
    print("|---|---|---|---|")
    for name, (cases, elements, wrong) in rows.items():
        print(f"| {name} | {cases} | {elements:,} | {wrong} |")
    assert apart == []


def memory_dtype(work: Work, buffer: execution.Memory) -> str:
    return next(
        memory.dtype for memory in work.run.memory if memory.name == buffer.name
    )


def ncu(folder: Path, work: list[Work], metrics: list[str]) -> list[dict[str, int]]:
    """Have ncu count; give its numbers, launch by launch."""
    program = shutil.which("ncu")
    assert program is not None, "ncu (Nsight Compute) is not on PATH"
    log = folder / "ncu.csv"
    options = ["--clock-control", "none", "--csv", "--print-units", "base"]
    options += ["--metrics", ",".join(metrics), "--log-file", str(log)]
    launched(folder, work, program, *options)
    lines = [line for line in log.read_text().splitlines() if line.startswith('"')]
    by_launch: dict[int, dict[str, int]] = defaultdict(dict)
    for row in csv.DictReader(lines):
        if not row["ID"]:
            continue  # the units of the columns
        # a row for each metric, or a column
        values = (
            {row["Metric Name"]: row["Metric Value"]} if "Metric Name" in row else row
        )
        for name in metrics:
            if name in values:
                value = values[name].replace(",", "")
                by_launch[int(row["ID"])][name] = int(float(value))
    return [by_launch[number] for number in sorted(by_launch)]


def test_counts_are_those_of_ncu(tmp_path: Path) -> None:
    cases = {
        name: public_cases(labs()[lab].lab)[1] for name, (lab, _) in sources().items()
    }
    work = [
        Work(built(sources()[name][1]).cubin, prepared(name, case).run)
        for name, case in cases.items()
    ]
    names = [metric for row in METRICS.values() for metric in row]
    by_launch = ncu(tmp_path, work, names)
    print("\n| solution | sectors: ours | ncu | requests: ours | ncu | ", end="")
    print("bank conflicts: ours | ncu |")
    print("|---|---|---|---|---|---|---|")
    wrong = []
    for name, work_item in zip(cases, work, strict=True):
        mine = Counts()
        for report in interpreted(name, work_item.run).reports:
            mine.add(report.counts)
        launches, by_launch = (
            by_launch[: len(work_item.run.launches)],
            by_launch[len(work_item.run.launches) :],
        )
        pairs = [
            (
                getattr(mine, count),
                sum(one[metric] for one in launches for metric in row),
            )
            for count, row in METRICS.items()
        ]
        cells = [f"{ours:,} | {theirs:,}" for ours, theirs in pairs]
        print(f"| {name} | {' | '.join(cells)} |")
        apart = TIMES_APART.get(sources()[name][0], 1.0)
        if any(not theirs / apart <= ours <= theirs * apart for ours, theirs in pairs):
            wrong.append(f"{name}: {pairs}")
    assert not by_launch, "ncu saw more launches"
    assert wrong == []
