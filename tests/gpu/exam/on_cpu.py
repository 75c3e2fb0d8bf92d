"""The edits of recorded cells, each run beside its cell on the CPU.

`python -m tests.gpu.exam.on_cpu [--traces FOLDER] [NAME ...]` needs no GPU: reports are
those of the traces in `benchmarks/open_exam`, or of a folder that holds the traces of
`python -m tests.gpu.exam --traces`; cells compute with smaller sizes on the CPU.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import io
import json
import linecache
import multiprocessing
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.gpu.exam.agreement import differences, outputs
from tests.gpu.exam.graphs_on_cpu import replace_gpu
from tests.gpu.exam.loading import Cell, chosen_cells, load_cells
from warpbook.kernel.runs.called_code import called_code
from warpbook.kernel.trying.once import Sources, divided
from warpbook_profiler.advice.candidates import liberal_edits
from warpbook_profiler.facts.trace import Trace
from warpbook_profiler.files.chrome import read_chrome_trace
from warpbook_profiler.model.change import Change
from warpbook_profiler.verdict.analysis import profile
from warpbook_profiler.verdict.called_edits import called_edits

_OPEN_EXAM = Path(__file__).parents[3] / "benchmarks" / "open_exam"
_TIMEOUT_S = 30.0
#: sizes of a setup become so many times smaller, the first that the cell runs with
_SMALLER = (64, 16, 8, 4, 2, 1)
#: sizes from which on, and what is left of them
_LARGE, _LEAST = 100, 8


def main(names: list[str], traces: Path | None) -> int:
    """Print what each cell's report offers, and how its edits do."""
    files = _of_open_exam() if traces is None else _in_folder(traces)
    for cell in chosen_cells(load_cells(), names):
        if not cell.changes or (cell.name not in files and not names):
            continue
        print(f"{cell.name} (expert: {cell.changes[0]})")
        called = in_process(_called, cell)
        trace = _trace(cell, files[cell.name], called)
        changes = profile(trace).changes
        for change in changes:
            result = _judged(cell, change) if change.code else "no edit"
            print(f"    {change.name}: {result}", flush=True)
            if names and change.diff:
                print(change.diff)
        unwritten = [one.name for one in changes if not one.code]
        written = called_edits(trace, called, unwritten)
        without = (one.code for one in changes if one.name == "no-autograd")
        tried = liberal_edits(
            cell.source,
            changes,
            called=called,
            written=written,
            unrecorded=next(without, ""),
        )
        for change in tried:
            print(f"    {change.name}, tried: {_judged(cell, change)}", flush=True)
            if names:
                print(change.diff)
    return 0


def _of_open_exam() -> dict[str, Path]:
    truth = json.loads((_OPEN_EXAM / "truth.json").read_bytes())
    return {one["cell"]: _OPEN_EXAM / one["file"] for one in truth["traces"].values()}


def _in_folder(folder: Path) -> dict[str, Path]:
    return {path.name.split(".")[0]: path for path in folder.glob("*.json*")}


def _trace(cell: Cell, path: Path, called: dict[str, str]) -> Trace:
    events, run = read_chrome_trace(str(path))
    return Trace(events, replace(run, source=cell.source, called=called))


def _called(cell: Cell) -> dict[str, str]:
    """Give the functions and methods of the cell's setup that it calls."""
    _without_gpu()
    for times in _SMALLER:
        setup = ast.unparse(_Smaller(times).visit(ast.parse(cell.setup)))
        with contextlib.suppress(Exception):
            return called_code(cell.source, _prepared(setup))
    return {}


def _judged(cell: Cell, change: Change) -> str:
    """Run both in a process of its own, with the smallest sizes that the cell takes."""
    for times in _SMALLER:
        result = in_process(_compare, cell, change, times)
        if not result.startswith("the cell itself"):
            break
    return result


def in_process(work: Callable[..., Any], *arguments: Any) -> Any:
    """Give what a call returns in a process of its own, or why it did not, in words."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)

    def send() -> None:
        sender.send(work(*arguments))

    process = context.Process(target=send)
    process.start()
    try:
        is_done = receiver.poll(_TIMEOUT_S)
        return receiver.recv() if is_done else f"takes more than {_TIMEOUT_S:.0f} s"
    except EOFError:
        return "the cell itself ended the process"
    finally:
        process.kill()
        process.join()


def _compare(cell: Cell, change: Change, times: int) -> str:
    _without_gpu()
    setup = ast.unparse(_Smaller(times).visit(ast.parse(cell.setup)))
    try:
        before = _run(setup, Sources("", cell.source))
    except Exception as problem:  # noqa: BLE001  # of a cell that needs its sizes
        return f"the cell itself raises {problem!r:.200}"
    try:
        after = _run(setup, divided(change.code, cell.source))
    except Exception as problem:  # noqa: BLE001  # whatever an edit did wrong
        return f"raises {problem!r:.200}"
    differs = differences(before, after, change.name, cell.source)
    differs += ["print"] * (before["print"] != after["print"])
    return f"differs in {', '.join(differs)}" if differs else f"agrees (1/{times})"


def _run(setup: str, sources: Sources) -> dict[str, Any]:
    """Return what a cell computes, and what it prints."""
    names = _prepared(setup)
    exec(_on_cpu(sources.once), names)
    torch.manual_seed(0)
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        results = outputs(_on_cpu(sources.cell), names)
    return {**results, "print": printed.getvalue()}


def _prepared(setup: str) -> dict[str, Any]:
    """Run a setup; return its namespace."""
    # a module is what classes of the setup are pickled and looked up by
    names: dict[str, Any] = {"__name__": "__main__", "torch": torch, "dev": "cpu"}
    names |= {"nn": torch.nn, "F": torch.nn.functional}
    torch.manual_seed(0)
    source = _on_cpu(setup)
    # where the sources of functions are looked for
    lines = source.splitlines(keepends=True)
    linecache.cache["setup"] = len(source), None, lines, "setup"
    exec(compile(source, "setup", "exec"), names)
    return names


def _on_cpu(source: str) -> str:
    return source.replace('"cuda"', '"cpu"').replace("'cuda'", "'cpu'")


def _without_gpu() -> None:
    torch.set_num_threads(1)
    replace_gpu(pytest.MonkeyPatch())


class _Smaller(ast.NodeTransformer):
    def __init__(self, times: int) -> None:
        self._times = times

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        match node:
            case ast.BinOp(left=ast.Constant(), op=ast.LShift(), right=ast.Constant()):
                value = ast.Constant(ast.literal_eval(ast.unparse(node.left)))
                value.value <<= ast.literal_eval(ast.unparse(node.right))
                return self.visit_Constant(value)
        return self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> ast.Constant:
        value = node.value
        if type(value) is int and value >= _LARGE:
            node.value = max(value // self._times, _LEAST)
        return node


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--traces", type=Path, metavar="FOLDER")
    parser.add_argument("names", nargs="*", metavar="NAME")
    options = parser.parse_args()
    sys.exit(main(options.names, options.traces))
