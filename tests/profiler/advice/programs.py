"""Programs written by hand, as traces of an H200, for rules about kernels."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.profiler.trace.written import as_bare, call, kernel, trace
from warpbook_profiler.files.chrome import read_chrome_trace
from warpbook_profiler.model.change import Change
from warpbook_profiler.verdict.analysis import analyse

Event = dict[str, Any]
#: of a kernel that fills the GPU
FULL = {"grid": [4096, 1, 1], "block": [256, 1, 1], "registers per thread": 32}


class Written:
    """A program that is written step by step; times are in µs."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.now = 0.0
        self._free: dict[int, float] = {}
        self._number = 0

    def host(self, time_us: float) -> None:
        """Do something else on the host."""
        self.now += time_us

    def launch(
        self, name: str, time_us: float, stream: int = 7, **more: Any
    ) -> tuple[float, float]:
        """Launch a kernel; give when it runs."""
        self._number += 1
        api = more.pop("api", "cudaLaunchKernel")
        cost_us = more.pop("cost_us", 4.0)
        after = more.pop("after", 0.0)
        self.events.append(call(self._number, self.now, name=api, dur=cost_us))
        self.now += cost_us
        begin = max(self.now + 2, self._free.get(stream, 0.0) + 1, after)
        args = FULL | {"stream": stream} | more.pop("args", {})
        event = kernel(self._number, begin, name=name, dur=time_us, tid=stream, **more)
        event["args"] |= args
        self.events.append(event)
        self._free[stream] = begin + time_us
        return begin, begin + time_us

    def call(self, name: str, time_us: float = 1.0) -> None:
        """Call CUDA for something that launches nothing."""
        self._number += 1
        self.events.append(call(self._number, self.now, name=name, dur=time_us))
        self.now += time_us

    def read(self) -> None:
        """Read one number, which waits for the GPU."""
        begin = self.now
        self.now += 3
        args = {"bytes": 4}
        name = "Memcpy DtoH (Device -> Pageable)"
        _, end = self.launch(
            name, 1.0, api="cudaMemcpyAsync", args=args, cat="gpu_memcpy"
        )
        self.call("cudaStreamSynchronize", max(end + 5 - self.now, 1.0))
        self.operator("aten::item", begin)

    def operator(self, name: str, begin: float, **more: Any) -> None:
        """Have an operator end now."""
        self.events.append(
            call(
                0,
                begin,
                cat="cpu_op",
                name=name,
                dur=self.now - begin,
                args=more,
            )
        )

    def does(self, operator: str, name: str, time_us: float, **more: Any) -> None:
        """Call an operator that launches one kernel."""
        begin = self.now
        linked = {"External id": len(self.events) + 1}
        args = more.pop("args", {}) | linked
        self.now += 5
        self.launch(name, time_us, args=linked, **more)
        self.now += 5
        self.operator(operator, begin, **args)

    def end(self) -> None:
        """Wait for everything."""
        end = max(self._free.values(), default=0.0)
        self.call("cudaDeviceSynchronize", max(end + 3 - self.now, 1.0))

    def changes(self, source: str | None = None) -> dict[str, Change]:
        """Give what is advised, as if the profiler had slowed nothing down."""
        self.end()
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "trace.json"
            path.write_bytes(trace(*self.events))
            events, run = read_chrome_trace(str(path))
        profile = analyse(events, replace(as_bare(run), source=source))
        return {change.name: change for change in profile.changes}
