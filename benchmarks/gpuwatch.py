"""What `%gpuwatch on` costs a cell: a watched kernel beside a bare one, cell by cell.

    python benchmarks/gpuwatch.py [--cells 200] [--repeats 3] [--write FILE]

Two kernels of one real Jupyter server, whose GPU is the stub's unless there is a real
one, run the same empty cell in turn. Told are the time from sending a cell to its
reply, in pairs, and the time between marks in the kernel that stand right before and
right after the watch's two hooks: what it does in the cell's way. The hand-over on its
thread runs meanwhile, so what that takes from the cells is in the pairs.
"""

from __future__ import annotations

import contextlib
import json
import statistics
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jupyter_client.blocking import BlockingKernelClient

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "extension"), str(ROOT / "monitors")]

from benchmarks.report import ask, spread, tell
from benchmarks.server import Server
from tests.stub_nvml import StubNvml, build

TIMEOUT_S = 120
#: nobody runs cells faster by hand
PAUSE_S = 0.02
CELL = "pass"

CASES = {
    "nothing loaded": "pass",
    "torch imported": "import torch",
    "torch with CUDA in use": "import torch; kept = torch.ones(2**20, device='cuda')",
}
#: notes the time at a hook; `kind` is of IPython's events
MARK = """
import time
{name} = []
def mark_{name}(_): {name}.append((time.perf_counter_ns(), time.thread_time_ns()))
get_ipython().events.register({kind!r}, mark_{name})
"""
NOTE = """\
An empty cell in two kernels of one server in turn, one of them watched: median over
the cells, then median (lowest to highest) of the runs. "Hooks" is what is done in the
cell's way. Of that the CPU works for what the next column says; the rest is
waiting for other threads and programs. "Added" is how much later the reply comes, in
pairs.

"""


@dataclass(frozen=True)
class Result:
    """One measured run of a case."""

    #: medians over its cells
    bare_ms: float
    watched_ms: float
    added_us: float
    hooks_us: float
    hooks_cpu_us: float


class Kernel:
    """A kernel that a server runs, spoken to without the server."""

    def __init__(self, connection_file: Path) -> None:
        """Wait until it answers."""
        self._client = BlockingKernelClient(connection_file=str(connection_file))
        self._client.load_connection_file()
        # a busy machine misses heartbeats
        self._client.start_channels(hb=False)
        self._client.wait_for_ready(timeout=TIMEOUT_S)

    def run(self, code: str) -> float:
        """Run a cell; give the ms until its reply."""
        begin_ns = time.perf_counter_ns()
        wanted = self._client.execute(code)
        while True:
            reply = self._client.get_shell_msg(timeout=TIMEOUT_S)
            if reply["parent_header"].get("msg_id") == wanted:
                break
        elapsed_ms = (time.perf_counter_ns() - begin_ns) / 1e6
        if reply["content"]["status"] != "ok":
            raise RuntimeError(f"{code}: {reply['content'].get('evalue')}")
        return elapsed_ms

    def value(self, code: str) -> str:
        """Run a cell whose `found` is wanted as text."""
        self.run(code)
        expressions = {"found": "found"}
        wanted = self._client.execute("", user_expressions=expressions)
        while True:
            reply = self._client.get_shell_msg(timeout=TIMEOUT_S)
            if reply["parent_header"].get("msg_id") == wanted:
                evaluated = reply["content"]["user_expressions"]["found"]
                return str(evaluated["data"]["text/plain"])

    def close(self) -> None:
        """Speak no more."""
        self._client.stop_channels()


@contextlib.contextmanager
def kernel_of(server: Server, folder: Path) -> Iterator[Kernel]:
    """Have the server start a kernel, and end it."""
    with _asked(server, "api/kernels", "POST") as answer:
        kernel_id = json.load(answer)["id"]
    (connection_file,) = folder.rglob(f"kernel-{kernel_id}.json")
    kernel = Kernel(connection_file)
    try:
        yield kernel
    finally:
        kernel.close()
        _asked(server, f"api/kernels/{kernel_id}", "DELETE").close()


def _asked(server: Server, path: str, method: str) -> Any:
    request = urllib.request.Request(
        server.url + path,
        headers={"Authorization": f"token {server.token}"},
        method=method,
    )
    return urllib.request.urlopen(request, timeout=TIMEOUT_S)


def measure(server: Server, folder: Path, prepare: str, cells: int) -> Result:
    """Run the cell in both kernels in turn."""
    with kernel_of(server, folder) as bare, kernel_of(server, folder) as watched:
        for kernel in (bare, watched):
            kernel.run("%load_ext warpbook")
            kernel.run(prepare)
        for name, kind in (("a", "pre_run_cell"), ("c", "post_run_cell")):
            watched.run(MARK.format(name=name, kind=kind))
        watched.run("%gpuwatch on")
        for name, kind in (("b", "pre_run_cell"), ("d", "post_run_cell")):
            watched.run(MARK.format(name=name, kind=kind))
        watched.run("for marks in (a, b, c, d): marks.clear()")
        bare_ms, watched_ms = [], []
        for _ in range(cells):
            time.sleep(PAUSE_S)
            bare_ms.append(bare.run(CELL))
            time.sleep(PAUSE_S)
            watched_ms.append(watched.run(CELL))
        watched.run("%gpuwatch off")
        hooks_us, hooks_cpu_us = (
            statistics.median(json.loads(watched.value(f"found = {spent}")))
            for spent in (_spent(cells, 0), _spent(cells, 1))
        )
    added_us = [(b - a) * 1000 for a, b in zip(bare_ms, watched_ms, strict=True)]
    return Result(
        statistics.median(bare_ms),
        statistics.median(watched_ms),
        statistics.median(added_us),
        hooks_us,
        hooks_cpu_us,
    )


def _spent(cells: int, clock: int) -> str:
    """The time between the marks of each cell in µs, by one of the two clocks."""
    # the cell that forgot the earlier marks left its own behind it
    marks = f"a[:{cells}], b[:{cells}], c[1:{cells + 1}], d[1:{cells + 1}]"
    spent = f"(q[{clock}] - p[{clock}] + s[{clock}] - r[{clock}]) / 1000"
    return f"[{spent} for p, q, r, s in zip({marks})]"


def report(results: dict[str, list[Result]]) -> str:
    """The table."""
    lines = [
        "| kernel | hooks, µs | of the CPU, µs | bare cell, ms "
        "| watched cell, ms | added, µs | ratio |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, runs in results.items():
        lines.append(
            f"| {name} | {spread([run.hooks_us for run in runs], 0)} "
            f"| {spread([run.hooks_cpu_us for run in runs], 0)} "
            f"| {spread([run.bare_ms for run in runs], 2)} "
            f"| {spread([run.watched_ms for run in runs], 2)} "
            f"| {spread([run.added_us for run in runs], 0)} "
            f"| {spread([run.watched_ms / run.bare_ms for run in runs], 2)} |"
        )
    return "\n".join(lines)


def main() -> None:
    """Measure every case that this machine has."""
    options = ask(__doc__, cells=200, repeats=3)
    import torch

    cases = dict(CASES)
    if not torch.cuda.is_available():
        del cases["torch with CUDA in use"]
    results: dict[str, list[Result]] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        env = {"JUPYTER_RUNTIME_DIR": str(folder / "runtime")}
        if not torch.cuda.is_available():
            env |= StubNvml(build(folder / "library"), folder / "state", "h200").env
        with Server(Path(sys.executable), folder, env) as server:
            for _ in range(options.repeats):
                for case, prepare in cases.items():
                    result = measure(server, folder, prepare, options.cells)
                    print(case, result, flush=True)
                    results.setdefault(case, []).append(result)
    tell(options, "What `%gpuwatch` costs a cell", NOTE + report(results))


if __name__ == "__main__":
    main()
