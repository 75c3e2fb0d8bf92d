"""Cells written by hand for the rules: a host that calls operators, and one GPU.

Times are laid out as a run without a profiler has them: a launch costs the host some
microseconds, a stream does its work in order, and who waits waits for all of it. So
the changed cell, laid out too, tells how long it really takes. Times are in ns.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.profiler.trace.simulated import BASE_NS, GPU
from warpbook_profiler.advice.evidence import Evidence
from warpbook_profiler.advice.prediction import Prediction
from warpbook_profiler.advice.proposal import Rule
from warpbook_profiler.capture.kineto_events import keeps_scalars
from warpbook_profiler.events.columns import KINETO_CATEGORIES, ON_GPU, Columns
from warpbook_profiler.events.run import Run
from warpbook_profiler.facts.trace import Trace
from warpbook_profiler.files.chrome import read_chrome_trace
from warpbook_profiler.model.bare_run import BareTimes
from warpbook_profiler.model.change import Change
from warpbook_profiler.replay.estimate import bare
from warpbook_profiler.verdict.bare_judging import judge_bare
from warpbook_profiler.verdict.metrics import measure

MAIN, STREAM = 4242, 7
_LAUNCH_NS, _AFTER_NS, _STEP_NS = 4_000, 3_000, 1_000
#: of an operator, before its first call and after its last
_ENTER_NS, _LEAVE_NS = 3_000, 1_000
_BETWEEN_NS = 2_000
_RETURN_NS = 3_000
#: bytes per ns of a copy, from and to ordinary memory and pinned memory
_RATES = {"Pageable": 10, "Pinned": 50}

#: what an operator is called with, in a trace file
_OPERANDS = ("Input Dims", "Input type", "Concrete Inputs")

Dims = tuple[Any, ...]


@dataclass
class Cell:
    """One cell as it runs; each method is what the host does next."""

    source: str | None = None
    #: each launch returns when its kernel is done, as with CUDA_LAUNCH_BLOCKING=1
    is_blocking: bool = False
    #: of the GPU
    memory_bytes: int = 140 << 30
    events: list[dict[str, Any]] = field(default_factory=list)
    host: int = 0
    _free: int = 0
    _number: int = 0
    #: the operators around what the host does: their numbers and threads
    _open: list[tuple[int, int]] = field(default_factory=list)

    @contextmanager
    def operator(
        self,
        name: str,
        dims: Dims = (),
        dtype: str = "float",
        category: str = "cpu_op",
        thread: int | None = None,
        scalars: Sequence[str] = (),
        sequence: int | None = None,
    ) -> Iterator[None]:
        """Call an operator around what is done within; it stays on its thread."""
        thread = thread or self._thread()
        self._number += 1
        number, start = self._number, self.host
        self._open.append((number, thread))
        self.host += _ENTER_NS
        yield
        self.host += _LEAVE_NS
        self._open.pop()
        args: dict[str, Any] = {"External id": number}
        if dims:
            args["Input Dims"] = dims
            args["Input type"] = [dtype if size else "" for size in dims]
            # no more than a live profile has
            scalars = scalars if keeps_scalars(name) else ()
            args["Concrete Inputs"] = [*scalars, *[""] * (len(dims) - len(scalars))]
        if sequence is not None:
            args["Sequence number"] = sequence
        self._event(category, name, thread, start, self.host, args)
        self.host += _BETWEEN_NS

    def call(self, name: str, *kernels: int, dims: Dims = (), **more: Any) -> None:
        """Call an operator that launches kernels of these times, if any."""
        with self.operator(name, dims, **more):
            for took in kernels:
                self.kernel(took)

    def views(self, *names: str) -> None:
        """Call operators that only look at their tensors another way."""
        for name in names:
            with self.operator(name):
                pass

    def kernel(self, took: int, name: str = "k") -> None:
        """Launch a kernel."""
        start = self.host
        end = self._work("kernel", name, took, {})
        returned = end + _RETURN_NS if self.is_blocking else start + _LAUNCH_NS
        self.api("cudaLaunchKernel", returned - start)

    def memset(self, took: int) -> None:
        """Set memory of the GPU."""
        self._work("gpu_memset", "Memset (Device)", took, {})
        self.api("cudaMemsetAsync", _LAUNCH_NS)

    def copy(self, kind: str, size_bytes: int, memory: str = "Pageable") -> None:
        """Copy to or from the host, "DtoH" or "HtoD"; pageable ones wait."""
        start = self.host
        to_host = kind == "DtoH"
        name = f"Device -> {memory}" if to_host else f"{memory} -> Device"
        took = max(size_bytes // _RATES[memory], 1_400)
        args = {"bytes": size_bytes}
        end = self._work("gpu_memcpy", f"Memcpy {kind} ({name})", took, args)
        carries = memory == "Pageable" and not to_host
        self.api("cudaMemcpyAsync", end - start if carries else _LAUNCH_NS)
        if to_host:
            self.wait()

    def item(self) -> None:
        """Read a number, as `.item()` does."""
        with self.operator("aten::item"), self.operator("aten::_local_scalar_dense"):
            self.copy("DtoH", 4)

    def wait(self, name: str = "cudaStreamSynchronize") -> None:
        """Wait for all that was launched."""
        self.api(name, max(self._free + _RETURN_NS - self.host, 2_000))

    def api(self, name: str, took: int) -> None:
        """Call CUDA."""
        args = {"correlation": self._correlation()}
        end = self.host + took
        self._event("cuda_runtime", name, self._thread(), self.host, end, args)
        self.host += took

    def python(self, took: int) -> None:
        """Run code that no record is made of."""
        self.host += took

    def trace(self) -> bytes:
        """Give the trace as torch writes it."""
        whole = {
            "ph": "X",
            "cat": "Trace",
            "name": "PyTorch Profiler (0)",
            "pid": "Spans",
            "tid": "PyTorch Profiler",
            "ts": 0.0,
            "dur": self.window_ns / 1000,
        }
        head = {
            "deviceProperties": [GPU | {"totalGlobalMem": self.memory_bytes}],
            "baseTimeNanoseconds": BASE_NS,
        }
        events = [*self._as_live(), whole]
        return json.dumps({**head, "traceEvents": events}).encode()

    def _as_live(self) -> Iterator[dict[str, Any]]:
        """Leave out what a live profile has not: operands of what launches nothing."""
        launching = {
            one["args"].get("External id")
            for one in self.events
            if KINETO_CATEGORIES[one["cat"]] in ON_GPU
        }
        for event in self.events:
            args = event["args"]
            if launching and args.get("External id") not in launching:
                args = {key: args[key] for key in args if key not in _OPERANDS}
            yield {**event, "args": args}

    @property
    def window_ns(self) -> int:
        """Give how long the cell takes, with what the GPU does in the end."""
        return max(self.host, self._free)

    def evidence(self, tmp_path: Path, is_timed: bool = True) -> Evidence:
        """Read the trace back; timed, the cell is known to take as long bare."""
        path = tmp_path / "cell.json"
        path.write_bytes(self.trace())
        events, run = read_chrome_trace(str(path))
        run = dataclasses.replace(run, source=self.source)
        if is_timed:
            took_ns = self.window_ns
            times = BareTimes(1, took_ns, took_ns, took_ns, "executions")
            run = dataclasses.replace(run, bare=times)
        return evidence_of(events, run)

    def _thread(self) -> int:
        return self._open[-1][1] if self._open else MAIN

    def _correlation(self) -> int:
        return 10_000 + len(self.events)

    def _work(self, category: str, name: str, took: int, args: dict[str, Any]) -> int:
        """Queue work on the GPU; its launch is the next call. Gives its end."""
        ready = self.host + _LAUNCH_NS + _AFTER_NS
        start = max(ready, self._free + _STEP_NS)
        self._free = start + took
        # the launch is the event after this one
        correlation = self._correlation() + 1
        args |= {"device": 0, "stream": STREAM, "correlation": correlation}
        if self._open:
            args["External id"] = self._open[-1][0]
        self._event(category, name, STREAM, start, self._free, args)
        return self._free

    def _event(
        self,
        category: str,
        name: str,
        track: int,
        start: int,
        end: int,
        args: dict[str, Any],
    ) -> None:
        self.events.append(
            {
                "ph": "X",
                "cat": category,
                "name": name,
                "pid": 1,
                "tid": track,
                "ts": start / 1000,
                "dur": (end - start) / 1000,
                "args": args,
            }
        )


def evidence_of(events: Columns, run: Run) -> Evidence:
    """Give what rules look at."""
    trace = Trace(events, run)
    judged = judge_bare(trace, measure(trace))
    measured_ns = None if run.bare is None else run.bare.median_ns
    return Evidence(trace, bare(trace, measured_ns), judged.bare, judged.metrics)


def changes_of(rule: Rule, evidence: Evidence) -> dict[str, Change]:
    """Give what a rule proposes, with its times, by name."""
    prediction = Prediction(evidence)
    advice = (prediction.of(proposal) for proposal in rule(evidence))
    return {one.change.name: one.change for one in advice if one is not None}
