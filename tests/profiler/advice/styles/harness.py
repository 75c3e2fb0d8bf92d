"""Programs as different people write them: what is named, and what edits compute."""

from __future__ import annotations

import contextlib
import io
import linecache
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
import torch

from tests.gpu.exam.graphs_on_cpu import replace_gpu
from tests.profiler.advice.edited_cells import is_close
from tests.profiler.advice.styles.recorder import OnDevice, recorded
from warpbook.kernel.runs.called_code import called_code
from warpbook.kernel.trying.once import divided
from warpbook_monitors import toml_text
from warpbook_profiler.advice.candidates import liberal_edits
from warpbook_profiler.facts.trace import Trace
from warpbook_profiler.model.change import Change
from warpbook_profiler.verdict.analysis import profile
from warpbook_profiler.verdict.called_edits import called_edits


class Program(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A cell, what came before it, and the change that makes it faster."""

    name: str
    #: the change's name
    change: str
    setup: str
    #: the cell, which leaves its results in `y`
    source: str
    #: other changes that are right
    accepted: tuple[str, ...] = ()
    #: names of sizes, as the program is recorded without memory, and as it runs
    large: dict[str, int] = {}
    small: dict[str, int] = {}
    #: the cell as an expert writes it
    expert: str = ""


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    program: tuple[Program, ...]


def read_programs(path: Path) -> tuple[Program, ...]:
    """Read a file of programs.

    Raises:
        ValueError: it does not fit.
    """
    return toml_text.decode(path.read_bytes(), _File).program


@contextlib.contextmanager
def prepared(
    setup: str, sizes: Mapping[str, int], device: str = "cpu"
) -> Iterator[dict[str, Any]]:
    """Run the cells before without a GPU; give their names.

    Sources of functions are found, as those of a notebook.
    """
    names = {"__name__": "__main__", "torch": torch, "dev": device, **sizes}
    names |= {"nn": torch.nn, "F": torch.nn.functional}
    lines = setup.splitlines(keepends=True)
    linecache.cache["earlier"] = len(setup), None, lines, "earlier"
    with pytest.MonkeyPatch.context() as patch:
        replace_gpu(patch)
        patch.setattr(torch.Tensor, "cuda", lambda tensor, *_, **__: tensor.to(device))
        torch.manual_seed(0)
        with OnDevice(device):
            exec(compile(setup, "earlier", "exec"), names)
        yield names


def advised(
    program: Program, is_large: bool | None = None
) -> tuple[tuple[Change, ...], list[Change]]:
    """Give what a report names, and all edits that `--apply` would run.

    Args:
        program: what is recorded.
        is_large: record it with large sizes, without memory; else as it runs on the
            CPU. None is what it has sizes for.
    """
    setup, source, small = program.setup, program.source, program.small
    is_large = bool(program.large) if is_large is None else is_large
    device, sizes = ("meta", program.large) if is_large else ("cpu", small)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        silent = contextlib.redirect_stdout(io.StringIO())
        with prepared(setup, sizes, device) as names, silent:
            cell = recorded(source, names, device, folder / "torch.json")
        trace = cell.evidence(folder).trace
    with prepared(setup, small) as names:
        called = called_code(source, names)
    trace = Trace(trace.events, replace(trace.run, called=called))
    changes = profile(trace).changes
    unwritten = [one.name for one in changes if not one.code]
    written = called_edits(trace, called, unwritten)
    unrecorded = next((one.code for one in changes if one.name == "no-autograd"), "")
    tried = liberal_edits(source, changes, False, called, written, unrecorded)
    return changes, [*(one for one in changes if one.code), *tried]


def ran(program: Program, edit: Change | None = None) -> tuple[Any, str]:
    """Run a program, or an edit of it, with small sizes on the CPU.

    Returns:
        its `y`, and what it prints.
    """
    code = program.source if edit is None else edit.code
    sources = divided(code.replace("device='cuda'", "device=dev"), program.source)
    with prepared(program.setup, program.small) as names:
        exec(sources.once, names)
        torch.manual_seed(0)
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(sources.cell, names)
    return names["y"], printed.getvalue()


def outcome(program: Program, edit: Change) -> str:
    """Tell whether an edit "agrees": it computes and prints what its program does."""
    before, printed = ran(program)
    try:
        after, shown = ran(program, edit)
    except Exception as problem:  # noqa: BLE001  # whatever an edit did wrong
        return f"{problem!r:.150}"
    is_same = is_close(before, after, edit.name) and printed == shown
    return "agrees" if is_same else "differs"
