"""Runs a cell of the exam in a real kernel: bare, profiled, bare, changed, tried."""

from __future__ import annotations

import contextlib
import gzip
import shutil
import statistics
import time
import traceback
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from tests.gpu.exam.loading import Cell
from tests.gpu.exam.results import (
    AS_FAST,
    AdvisedChange,
    AppliedFigures,
    CellResult,
    EditFigures,
    ProfileFigures,
    Times,
    TrialFigures,
)
from tests.gpu.notebook import Notebook, open_notebook
from tests.gpu.watched_state import watched_state
from warpbook_profiler.techniques.registry import experiments

_ROOT = Path(__file__).parents[3]
#: of a cell with all its runs, above which something hangs
_TIMEOUT_S = 180.0
#: of them a compiler takes most; other changes end by their number of runs
_TRY_SECONDS = 60
_APPLY_SECONDS = 30
#: executions without the profiler before the second profile
_EXECUTIONS = 3
_RUNS = 7
#: what stays slow after so many rounds is what the profiler left behind
_AFTER_ROUNDS, _AFTER_PAUSE_S = 4, 0.5
_WARM_UPS = 3
#: of the three cells that are compared after `--apply`
_TURNS = 2
#: runs that tell how far a cell's results depend on how its inputs are rounded
_ROUNDINGS = 3
_MOST_ERROR = 1_500
_EXPERIMENTS = frozenset(experiment.name for experiment in experiments())
#: run in each kernel once; all that cells do not set begins with an underscore
HELPERS = f"""
import builtins as _exam_builtins, gc as _exam_gc, importlib.util as _exam_importlib
import gc, importlib.util, sys, time, torch
import time as _exam_time, torch as _exam_torch
import torch.nn as nn, torch.nn.functional as F
sys.path.append({str(_ROOT)!r})
from tests.gpu.exam import agreement as _agreement

dev = "cuda"
json = None
_exam_names = globals()
_exam_first = {{name: one for name, one in globals().items() if name[0] != "_"}}

def _exam_times(source):
    code = _exam_builtins.compile(source, "exam", "exec")
    times = []
    for run in _exam_builtins.range({_WARM_UPS + _RUNS}):
        _exam_torch.cuda.synchronize()
        began = _exam_time.perf_counter()
        _exam_builtins.exec(code, _exam_names)
        _exam_torch.cuda.synchronize()
        times.append((_exam_time.perf_counter() - began) * 1e3)
    times = _exam_builtins.sorted(times[{_WARM_UPS}:])
    return [times[{_RUNS // 2}], times[0], times[-1]]

def _exam_fresh():
    for name in _exam_builtins.list(_exam_names):
        if name[0] != "_":
            del _exam_names[name]
    _exam_names.update(_exam_first)
    torch = _exam_torch
    _exam_gc.collect()
    torch.use_deterministic_algorithms(False)
    torch.set_float32_matmul_precision("highest")
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    torch.cuda.set_per_process_memory_fraction(1.0)
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    torch.manual_seed(0)
"""
#: figures of a profile that the exam keeps
_FIGURES = """{key: value for key, value in _exam_p.to_dict().items() if key in (
"verdict", "bare", "changes", "wall_ns", "profiler_ns", "completeness", "gpu_name")}"""


class Kernels:
    """One kernel for most cells, and one each for cells with libraries of their own."""

    def __init__(self, stack: contextlib.ExitStack) -> None:
        """Start none yet; the stack ends those that are started."""
        self._shared = contextlib.ExitStack()
        stack.callback(self.forget)
        self._notebook: Notebook | None = None

    def forget(self) -> None:
        """End the shared kernel: what an error left in it is no part of other cells."""
        self._notebook = None
        self._shared.close()

    @contextlib.contextmanager
    def of(self, cell: Cell) -> Iterator[Notebook]:
        """Give a kernel in which nothing of other cells is left."""
        if cell.own_kernel:
            # memory that the other kernel keeps is missing here
            self.forget()
            with open_notebook() as notebook:
                notebook.run(HELPERS)
                yield notebook
            return
        if self._notebook is None:
            self._notebook = self._shared.enter_context(open_notebook())
            self._notebook.run(HELPERS)
        try:
            yield self._notebook
        except BaseException:
            self.forget()
            raise


def run_cell(
    kernels: Kernels,
    cell: Cell,
    profiles: int,
    traces: Path | None,
    apply: bool = False,
) -> CellResult:
    """Run a cell; an error is in the result, beside what was measured before it.

    Args:
        kernels: where it runs.
        cell: the cell.
        profiles: how often it is profiled.
        traces: a folder for the trace of the first profile.
        apply: changes are applied, too.
    """
    began_s = time.monotonic()
    measured: dict[str, Any] = {}
    try:
        with kernels.of(cell) as notebook:
            _measure(notebook, cell, profiles, traces, measured)
            if apply and cell.changes and "fixed" in measured:
                measured["applied"] = apply_all(notebook, cell)
    except Exception as error:  # noqa: BLE001  # the other cells run, whatever it is
        text = "".join(traceback.format_exception_only(error))
        measured["error"] = text[:_MOST_ERROR] or type(error).__name__
    seconds = round(time.monotonic() - began_s, 1)
    return CellResult(name=cell.name, seconds=seconds, **measured)


def _measure(
    notebook: Notebook,
    cell: Cell,
    profiles: int,
    traces: Path | None,
    measured: dict[str, Any],
) -> None:
    """Add to `measured` what is known, step by step."""
    missing = [
        name
        for name in cell.needs
        if not notebook.value(f"_exam_importlib.find_spec({name!r}) is not None")
    ]
    if missing:
        measured["left_out"] = f"no {' and '.join(missing)} here"
        return
    _set_up(notebook, cell)
    measured["gpu"] = notebook.value("_exam_torch.cuda.get_device_name()")
    # by another source than the cell's: the kernel must not know its bare time yet
    measured["before"] = _times(notebook, cell.source)
    measured["again"] = _times(notebook, cell.source)
    measured["profiles"] = ()
    for number in range(profiles):
        save = None if traces is None or number else traces / f"{cell.name}.json"
        for _ in range((0, _EXECUTIONS)[number] if number < 2 else 1):
            notebook.run(cell.source, _TIMEOUT_S)
        profile = _profile(notebook, cell, save)
        measured["profiles"] += (profile,)
    measured["after"] = _times_after(notebook, cell.source, measured["again"])
    if cell.try_name is not None:
        measured["trial"] = _trial(notebook, cell, cell.try_name)
    promised = _promised(cell, measured["profiles"])
    measured["tried"] = tuple(
        _trial(notebook, cell, change.name)
        for change in promised
        if not change.code and change.name in _EXPERIMENTS
    )
    measured["edits"] = tuple(
        _edit(notebook, cell, change)
        for change in _edited(cell, measured["profiles"][-1:], promised)
    )
    if measured["edits"]:
        # what an edit sets is no part of the expert's cell
        _set_up(notebook, cell)
    notebook.run(cell.fast_setup, _TIMEOUT_S)
    fast = f"{cell.fast.strip()}\ntorch.cuda.synchronize()"
    measured["fixed"] = _times(notebook, fast)
    measured["fixed_alone"] = _times_alone(notebook, fast)


def _set_up(notebook: Notebook, cell: Cell) -> None:
    notebook.run("_exam_fresh()")
    notebook.run(cell.setup, _TIMEOUT_S)


def _body(code: str) -> str:
    """Leave out the magic that profiled the cell."""
    return code.partition("\n")[2] if code.startswith("%%") else code


def _promised(cell: Cell, profiles: Sequence[ProfileFigures]) -> list[AdvisedChange]:
    """Choose what a profile promises though the expert says that it gains nothing."""
    promised = {
        change.name: change
        for profile in profiles
        for change in profile.changes
        if change.is_promise and cell.is_without_gain(change.name)
    }
    return list(promised.values())


def _edited(
    cell: Cell, profiles: Sequence[ProfileFigures], promised: list[AdvisedChange]
) -> list[AdvisedChange]:
    """Choose the first edit, the one that the expert makes, and those of promises."""
    edits = [change for one in profiles for change in one.changes if change.code]
    made = [change for change in edits if change.name in cell.changes[:1]]
    tried = [change for change in promised if change.code]
    chosen = [*edits[:1], *made[:1], *tried]
    return list({change.name: change for change in chosen}.values())


def _edit(notebook: Notebook, cell: Cell, change: AdvisedChange) -> EditFigures:
    """Run a cell and its edit, each after the setup, and time the edit."""
    for place, source in enumerate((cell.source, change.code)):
        _set_up(notebook, cell)
        done = notebook.try_run(
            f"_exam_outputs_{place} = _agreement.outputs({source!r}, _exam_names)",
            _TIMEOUT_S,
        )
        if done.error is not None:
            which = "" if place else "the cell itself: "
            return EditFigures(change.name, which + done.text[-_MOST_ERROR:])
    notebook.run("_exam_rounded = []")
    compared = (
        "_agreement.differences(_exam_outputs_0, _exam_outputs_1, "
        f"{change.name!r}, {cell.source!r}, _exam_rounded)"
    )
    for number in range(_ROUNDINGS if notebook.value(compared) else 0):
        _set_up(notebook, cell)
        notebook.run(
            f"_agreement.round_inputs({cell.source!r}, _exam_names, {number})\n"
            f"_exam_rounded.append(_agreement.outputs({cell.source!r}, _exam_names))",
            _TIMEOUT_S,
        )
    differs = notebook.value(compared)
    notebook.run("del _exam_outputs_0, _exam_outputs_1, _exam_rounded")
    return EditFigures(change.name, "", tuple(differs), _times(notebook, change.code))


def _times(notebook: Notebook, source: str) -> Times:
    notebook.run(f"_exam_measured = _exam_times({source!r})", _TIMEOUT_S)
    return Times(*notebook.value("_exam_measured"))


def _times_after(notebook: Notebook, source: str, before: Times) -> Times:
    """Time the cell until it is as fast as before; a slow spell of the host ends."""
    for _ in range(_AFTER_ROUNDS):
        times = _times(notebook, source)
        if times.median_ms <= AS_FAST * before.median_ms:
            break
        time.sleep(_AFTER_PAUSE_S)
    return times


def _times_alone(notebook: Notebook, source: str) -> Times:
    """Time executions as the kernel times those of a cell: one by one."""
    times_ms = []
    for _ in range(_EXECUTIONS + 1):
        notebook.run(
            "_exam_began = _exam_time.perf_counter()\n"
            f"{source}\n"
            "_exam_took = (_exam_time.perf_counter() - _exam_began) * 1e3",
            _TIMEOUT_S,
        )
        times_ms.append(notebook.value("_exam_took"))
    times_ms = sorted(times_ms[1:])
    return Times(statistics.median(times_ms), times_ms[0], times_ms[-1])


def _profile(notebook: Notebook, cell: Cell, save: Path | None) -> ProfileFigures:
    option = "" if save is None else f" --save {save}"
    shown = notebook.run(f"%%gpuprof -q -o _exam_p{option}\n{cell.source}", _TIMEOUT_S)
    if notebook.value("_exam_p is None"):
        raise AssertionError(f"The cell gave no profile: {shown}")
    if save is not None:
        _compress(save)
    return profile_figures(notebook.value(_FIGURES))


def _compress(path: Path) -> None:
    with path.open("rb") as plain, gzip.open(f"{path}.gz", "wb") as packed:
        shutil.copyfileobj(plain, packed)
    path.unlink()


def profile_figures(figures: dict[str, Any]) -> ProfileFigures:
    """Choose from a profile's dictionary what the exam judges."""
    verdict, bare = figures["verdict"] or {}, figures["bare"] or {}
    return ProfileFigures(
        kind=verdict.get("kind"),
        sentence=verdict.get("sentence", ""),
        wall_ms=figures["wall_ns"] / 1e6,
        profiler_ms=figures["profiler_ns"] / 1e6,
        refusal=figures["completeness"].get("refusal", ""),
        bare_basis=bare.get("basis"),
        bare_ms=_ms(bare.get("time_ns")),
        bare_low_ms=_ms(bare.get("low_ns")),
        bare_high_ms=_ms(bare.get("high_ns")),
        between=tuple(bare.get("between", ())),
        changes=tuple(
            AdvisedChange(
                name=change["name"],
                basis=change["basis"],
                sentence=change["sentence"],
                time_ms=_ms(change["time_ns"]),
                low_ms=_ms(change["low_ns"]),
                high_ms=_ms(change["high_ns"]),
                speed_low=change["speed_low"],
                speed_high=change["speed_high"],
                code=_body(change["code"]),
            )
            for change in figures["changes"]
        ),
    )


def _ms(time_ns: int | None) -> float | None:
    return None if time_ns is None else time_ns / 1e6


def _trial(notebook: Notebook, cell: Cell, name: str) -> TrialFigures:
    notebook.run(watched_state())
    # a graph can't hold a wait for the GPU: the cell runs as a person writes it
    notebook.run(
        f"%%gpuprof -q -o _exam_p --try {name} --try-seconds {_TRY_SECONDS}\n"
        f"{cell.slow.strip()}",
        _TIMEOUT_S,
    )
    (trial,) = notebook.value("_exam_p.to_dict()['trials']")
    states: list[list[str]] = notebook.value("_states")
    if len(states) != 1:
        raise AssertionError(f"The state was looked at {len(states)} times, not once.")
    speed = trial["speed"] or {}
    return msgspec.convert(
        {
            **{key: trial[key] for key in ("name", "outcome", "sentence")},
            "speed_low": speed.get("low"),
            "speed_high": speed.get("high"),
            "differs": bool((trial["difference"] or {}).get("differs")),
            "changed_state": states[0],
        },
        TrialFigures,
    )


def apply_all(notebook: Notebook, cell: Cell) -> AppliedFigures:
    """Apply all changes that gain, from the state that the cell begins in."""
    _set_up(notebook, cell)
    notebook.run(cell.slow, _TIMEOUT_S)
    notebook.run(watched_state())
    notebook.run(
        f"%%gpuprof -q -o _exam_p --apply all --try-seconds {_APPLY_SECONDS}\n"
        f"{cell.slow.strip()}",
        _TIMEOUT_S,
    )
    edited = notebook.value("_exam_p.to_dict()['edited']")
    (changed,) = notebook.value("_states")
    is_better = edited["sentence"].startswith("Better")
    return AppliedFigures(
        tuple(edited["changes"]),
        edited["sentence"],
        edited["speed"]["ratio"] if is_better else 1.0,
        _side_by_side(notebook, cell, edited) if is_better else None,
        tuple(changed),
    )


def _side_by_side(
    notebook: Notebook, cell: Cell, edited: dict[str, Any]
) -> tuple[Times, Times, Times]:
    """Time the cell, the expert's and the edited one in turns.

    A host is slower for a while; of each cell its better turn counts.
    """
    turns = (
        ("", cell.slow),
        (cell.fast_setup, cell.fast),
        (edited["once"], edited["code"]),
    )
    times: list[list[Times]] = [[], [], []]
    for _ in range(_TURNS):
        for (once, source), mine in zip(turns, times, strict=True):
            _set_up(notebook, cell)
            notebook.run(once, _TIMEOUT_S)
            mine.append(_times(notebook, f"{source.strip()}\ntorch.cuda.synchronize()"))
    before, fixed, applied = (min(mine, key=_median_ms) for mine in times)
    return before, fixed, applied


def _median_ms(times: Times) -> float:
    return times.median_ms
