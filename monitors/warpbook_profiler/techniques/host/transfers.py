"""Copies from and to ordinary memory, which the driver has to stage."""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from warpbook_monitors import units
from warpbook_monitors.units import rate, size
from warpbook_profiler.advice.chip import Span
from warpbook_profiler.advice.code.value_flow import ValueFlow
from warpbook_profiler.advice.evidence import Evidence
from warpbook_profiler.advice.proposal import Proposal
from warpbook_profiler.advice.translation.made_values import MadeValues
from warpbook_profiler.advice.translation.pinned_memory import pinned_before
from warpbook_profiler.advice.ways import Ways
from warpbook_profiler.checklist.answers import Judgement
from warpbook_profiler.checklist.facts import Facts, Question, at_line, percent
from warpbook_profiler.events.columns import NONE, Category, Int64s, distinct
from warpbook_profiler.techniques.technique import (
    Applied,
    ChangeKind,
    Technique,
    TriedCell,
)

if TYPE_CHECKING:
    import torch

#: copies below this share of the bare run are left alone
_LEAST_SHARE = 0.03
#: smaller ones take what their call takes, from whichever memory
_SMALL_BYTES = 256 << 10
#: more is not taken from the machine without a person's word
_MOST_PINNED_BYTES = 4 << 30
#: functions that make a tensor of nothing that is in memory
_MAKES = frozenset(
    "rand randn randint randperm normal zeros ones full empty eye arange "
    "linspace".split()
)
_TO_GPU, _PAGEABLE = "HtoD", "Pageable"
#: of the window, below which copies to the GPU decide nothing
_LEAST_COPYING = 0.01


def transfers(evidence: Evidence) -> Iterator[Proposal]:
    """Propose pinned memory for large copies to the GPU."""
    every = _pageable(evidence)
    copies = every[evidence.gpu.size_bytes[every] >= _SMALL_BYTES]
    time_ns = evidence.time_ns(copies)
    if evidence.share(time_ns) < _LEAST_SHARE:
        return
    gpu, chip = evidence.gpu, evidence.chip
    size_bytes = int(gpu.size_bytes[copies].sum())
    per_second = size_bytes / max(time_ns, 1) * 1e9
    ways = Ways(evidence)
    known = None
    if chip is not None:
        known = chip.copy(size_bytes, "to_gpu", calls=len(copies))
    # a copy takes time whatever memory it is from
    ways.resize(copies, (known or Span(0.0, 0.0, 0.0)).at_most(time_ns))
    for some, in_worst in ((copies, True), (every, False)):
        launches, outer = evidence.calls.launch[some], evidence.operators.outer[some]
        waits = evidence.waits_within(distinct(outer[outer != NONE]))
        # the small ones beside them may be of memory that nobody pins
        ways.stop_waiting(launches[launches != NONE], in_worst)
        ways.drop_calls(waits, in_worst)
    calls = evidence.code.calls("to", "cuda")
    filled = MadeValues(ValueFlow(evidence.code), evidence.code).moves.values()
    made = {move for moves in filled for move in moves}
    moved = [call for call in calls if not (_is_made(call.node) or call.node in made)]
    if calls and not moved:
        # what is made for the copy has no memory to pin
        return
    count = f"{len(copies):,} cop{'ies' if len(copies) != 1 else 'y'}"
    yield Proposal(
        name="pinned",
        title="Copy from pinned memory, with non_blocking=True.",
        evidence=(
            f"{count} to the GPU carry {size(size_bytes)} from pageable memory at "
            f"{rate(per_second, 'B')}: {units.share(evidence.share(time_ns))} of the "
            "bare run."
        ),
        ways=ways,
        is_bound=known is None,
        reason=(
            "Pin the memory beforehand, as DataLoader(pin_memory=True) does: pinning "
            "it for one copy takes longer than the copy."
        ),
        operator=_operator(evidence, copies),
        line=moved[0].line if moved else _line(evidence, copies),
        code=pinned_before(evidence, moved) if size_bytes <= _MOST_PINNED_BYTES else "",
    )


def _is_made(call: ast.Call) -> bool:
    """Tell whether what is copied is made by the same expression."""
    function = call.func
    while isinstance(function, ast.Attribute) and isinstance(function.value, ast.Call):
        function = function.value.func
    name = getattr(function, "attr", getattr(function, "id", ""))
    return function is not call.func and name in _MAKES


def _pageable(evidence: Evidence) -> Int64s:
    gpu = evidence.gpu
    named = [_TO_GPU in name and _PAGEABLE in name for name in gpu.names]
    chosen = np.array(named or [False])[gpu.name] & gpu.is_in(Category.COPY)
    return np.flatnonzero(chosen)


def _operator(evidence: Evidence, copies: Int64s) -> str | None:
    outer = evidence.operators.outer[copies]
    known = outer[outer != NONE]
    return evidence.operators.name(int(known[0])) if len(known) else None


def _line(evidence: Evidence, copies: Int64s) -> int | None:
    launch = evidence.calls.launch[copies]
    known = launch[launch != NONE]
    if not len(known):
        return None
    return evidence.line_at(int(evidence.calls.api.start_ns[known[0]]))


def _judge(facts: Facts) -> Judgement:
    advised = facts.advised(PINNED_INPUT)
    if advised is not None:
        return advised
    copies = [copy for copy in facts.metrics.copies if copy.direction == "HtoD"]
    if not copies:
        return Judgement("not applicable", "Nothing is copied to the GPU.")
    if not any(copy.host_memory for copy in copies):
        return Judgement(
            "unknown",
            "The trace does not show whether the copies are from pinned memory.",
        )
    times_ns = {"pinned": 0, "pageable": 0}
    for copy in copies:
        times_ns[copy.host_memory] = times_ns.get(copy.host_memory, 0) + copy.time_ns
    total_ns = sum(times_ns.values())
    share = total_ns / max(facts.metrics.window_ns, 1)
    pinned = times_ns["pinned"] / max(total_ns, 1)
    evidence = (
        f"{percent(pinned)} of the time of copies to the GPU is from pinned memory; "
        f"they take {percent(share)} of the window."
    )
    if pinned >= 1 - _LEAST_COPYING:
        return Judgement("yes", evidence)
    if share < _LEAST_COPYING:
        return Judgement("not applicable", evidence)
    passed = facts.code.keyword("pin_memory", "DataLoader")
    if passed is not None and passed[0]:
        evidence += f" The code has pin_memory=True{at_line(passed[1])}."
    return facts.without_gain(evidence)


PINNED_INPUT = Question(
    name="pinned-input",
    text="Is input copied from pinned memory?",
    judge=_judge,
    no_where=(
        "copies to the GPU are from pageable memory, or memory is pinned repeatedly"
    ),
    lab="host-device-copies",
)


class Pinned:
    """What the cell copies to the GPU is pinned beforehand, and not waited for."""

    name: ClassVar[str] = "pinned"
    advice: ClassVar[str] = (
        "Pin the memory once (tensor.pin_memory(), pin_memory=True of a DataLoader) "
        "and copy with non_blocking=True."
    )
    warm_ups: ClassVar[int] = 2
    cost: ClassVar[int] = 1
    what: ClassVar[str] = (
        "what the cell copies to the GPU is pinned before the run; `.to()` and "
        "`.cuda()` in the cell's own lines don't wait, unless the cell computes on the "
        "host"
    )
    not_where: ClassVar[str] = (
        "nothing is copied from pageable memory, or the cell itself creates what is "
        "copied"
    )

    def __init__(self) -> None:
        """Pin nothing yet."""
        #: by the address of what was there before: all bytes, pinned
        self._pinned: dict[int, torch.Tensor] = {}
        self._run: Callable[[], Any] | None = None

    def why_not(self, cell: TriedCell) -> str | None:
        if cell.facts.why_no_gpu is not None:
            return cell.facts.why_no_gpu
        if not cell.facts.pageable:
            return "the cell copies nothing from pageable memory to a GPU."
        tensors = self._tensors(cell)
        if not tensors:
            return "the cell itself creates what it copies to the GPU."
        storages = {
            _address(tensor): tensor.untyped_storage().nbytes() for tensor in tensors
        }
        wanted_bytes = sum(storages.values())
        free_bytes = cell.free_host_bytes()
        # pinned memory is taken from everybody
        if wanted_bytes > free_bytes // 4:
            return (
                f"it would pin {units.size(wanted_bytes)}, and "
                f"{units.size(free_bytes)} of the host's memory are free."
            )
        return None

    @contextlib.contextmanager
    def applied(self, cell: TriedCell) -> Iterator[Applied]:
        """Put pinned copies in the place of the elements."""
        tensors = [(tensor, tensor.data) for tensor in self._tensors(cell)]
        if self._run is None:
            # what the host may write meanwhile, a copy must not read on its way
            self._run = cell.run if cell.facts.on_host else cell.without_waiting()
        try:
            for tensor, then in tensors:
                tensor.data = self._pinned_like(then)
            yield Applied(self._run)
        finally:
            for tensor, then in tensors:
                tensor.data = then

    def _tensors(self, cell: TriedCell) -> list[torch.Tensor]:
        return [
            tensor
            for _, tensor in cell.tensors
            if tensor.device.type == "cpu" and _address(tensor) in cell.facts.pageable
        ]

    def _pinned_like(self, tensor: torch.Tensor) -> torch.Tensor:
        """Give the same elements in pinned memory; several views share one copy."""
        import torch

        storage = tensor.untyped_storage()
        whole = torch.empty(0, dtype=torch.uint8, device=tensor.device).set_(storage)
        pinned = self._pinned.get(_address(tensor))
        if pinned is None:
            pinned = self._pinned[_address(tensor)] = whole.pin_memory()
        pinned.copy_(whole)
        elements = torch.empty(0, dtype=tensor.dtype)
        elements.set_(
            pinned.untyped_storage(),
            tensor.storage_offset(),
            tensor.size(),
            tensor.stride(),
        )
        return elements


def _address(tensor: torch.Tensor) -> int:
    return int(tensor.untyped_storage().data_ptr())


TECHNIQUE = Technique(
    changes=(
        ChangeKind(
            names=("pinned",),
            what="copies of 256 KiB or more from pageable memory to the GPU",
            time="predicted",
            answers=PINNED_INPUT,
            lab="host-device-copies",
        ),
    ),
    rule=transfers,
    questions=(PINNED_INPUT,),
    experiments=(Pinned,),
)
