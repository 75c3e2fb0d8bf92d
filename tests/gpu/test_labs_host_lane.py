"""The parts of the host lane on a real GPU, the least certain first.

pytest -m gpu -s tests/gpu/test_labs_host_lane.py
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from textwrap import indent

import pytest

from tests.labs.host.small_lab import ON_THE_GPU, RIGHT, write_lab
from warpbook_labs.cases.sampling import hidden_cases, public_cases
from warpbook_labs.engines.host import child_handle as child
from warpbook_labs.engines.host.harness import Probe
from warpbook_labs.engines.host.lane import Bounds, HostRequest, run_on_gpu
from warpbook_labs.engines.host.session import Session
from warpbook_labs.gpu import parent
from warpbook_labs.gpu.driver import Device
from warpbook_labs.gpu.gpu import Gpu, find_gpu
from warpbook_labs.gpu.tools import Tools
from warpbook_labs.lab.loaded import Submission
from warpbook_labs.lab.loader import load

pytestmark = pytest.mark.gpu

#: what labs need of PyTorch, each tried in the sandbox, after it was shut in
NEEDED = {
    "a product of matrices": "a = torch.randn(512, 512, device='cuda'); (a @ a).sum()",
    "in half precision": "a = torch.ones(64, 64, device='cuda').half(); (a @ a).sum()",
    "in int8": "a = torch.ones(64, 64, device='cuda').to(torch.int8)\n"
    "torch._int_mm(a, a.t())",
    "a convolution": "torch.backends.cudnn.benchmark = True\n"
    "x = torch.randn(4, 8, 32, 32, device='cuda')\n"
    "w = torch.randn(8, 8, 3, 3, device='cuda')\n"
    "torch.nn.functional.conv2d(x, w)",
    "a graph": "a = torch.ones(8, device='cuda')\n"
    "g = torch.cuda.CUDAGraph()\n"
    "torch.cuda.synchronize()\n"
    "with torch.cuda.graph(g):\n    b = a * 2\n"
    "g.replay()",
    "streams and events": "s = torch.cuda.Stream()\n"
    "with torch.cuda.stream(s):\n"
    "    e = torch.cuda.Event(enable_timing=True); e.record()\n"
    "e.synchronize()",
    "pinned memory": "torch.empty(1 << 20, pin_memory=True).cuda(non_blocking=True)",
    "mixed precision": "m = torch.nn.Linear(8, 8).cuda()\n"
    "scaler = torch.amp.GradScaler('cuda')\n"
    "o = torch.optim.SGD(m.parameters(), lr=0.1)\n"
    "with torch.autocast('cuda', dtype=torch.float16):\n"
    "    loss = m(torch.ones(4, 8, device='cuda')).square().mean()\n"
    "scaler.scale(loss).backward(); scaler.step(o); scaler.update()",
    "a gigabyte": "torch.empty(1 << 30, dtype=torch.uint8, device='cuda').fill_(1)",
    "random numbers": "torch.randn(100, device='cuda').sort()",
    "bitsandbytes, where it is": "try:\n    import bitsandbytes\n"
    "except ImportError:\n    pass",
}
#: starts a kernel of a second, and keeps its process from waiting for it
LEAVES_WORK = """
import torch
from given import plus_one

real = torch.cuda.synchronize
torch.cuda.synchronize = lambda *given: None
side = torch.cuda.Stream()


def prepare(n):
    return None


def run(state, x, factor, out, whole):
    out.copy_(plus_one(x * factor))
    whole.copy_(x)
    torch.cuda.current_stream().synchronize()
    with torch.cuda.stream(side):
        torch.cuda._sleep(2_000_000_000)
"""

#: shuts itself in with some walls only, to tell which of them stops something
WALLS = """
import os, sys
from warpbook_labs.sandbox import call_filters as calls
from warpbook_labs.sandbox import gpu_confinement as confine
from warpbook_labs.sandbox import linux

linux.die_with_parent()
linux.gain_no_rights()
if sys.argv[1] == "files":
    print("files", confine.close_files((), os.environ["TMPDIR"]))
import torch
torch.zeros(1, device="cuda")
if sys.argv[1] == "late files":
    print("files", confine.close_files((), os.environ["TMPDIR"]))
if sys.argv[1] == "calls":
    print("calls", calls.refuse_harm())
if sys.argv[1] == "all but files":
    print("network, calls", confine.shut_in())
exec(sys.argv[2])
torch.cuda.synchronize()
print("works")
"""


def tell_walls(text: str, folder: Path) -> None:
    """Print what becomes of something behind each wall alone."""
    folder.mkdir(exist_ok=True)
    for wall in ("none", "files", "late files", "calls", "all but files"):
        done = subprocess.run(
            [sys.executable, "-c", WALLS, wall, text],
            capture_output=True,
            text=True,
            cwd="/",
            env=child._environment(str(folder)),
        )
        said = (done.stdout + done.stderr).strip().splitlines()[-3:]
        print(f"| behind {wall} | {done.returncode} | {' / '.join(said)} |")


@cache
def gpu() -> Gpu:
    return find_gpu()


def heard(
    folder: Path, text: str, is_staged: bool = False, is_timed: bool = False
) -> parent.WorkerReport:
    loaded = write_lab(folder)
    cases = (*public_cases(loaded.lab), *hidden_cases(loaded.lab, 7)[:2])
    request = HostRequest(
        str(loaded.folder), text, cases, is_timed, is_staged=is_staged
    )
    return parent.run(request, gpu().uuid, 120, "warpbook_labs.engines.host.worker")


@pytest.mark.parametrize("is_staged", [False, True])
def test_buffers_in_every_place_are_shared_and_right(
    is_staged: bool, tmp_path: Path
) -> None:
    began_s = time.monotonic()
    done = heard(tmp_path, RIGHT, is_staged)
    print(f"\n| staged: {is_staged} | {time.monotonic() - began_s:.1f} s |")
    print(f"| {done.began} | {done.ended} | {done.problem} |")
    for tried in done.tried:
        print(
            f"| {tried.result.about} | {tried.result.passed} | {tried.result.message} |"
        )
    if done.began is None or "begun again" in done.began.isolation:
        tell_walls("pass", tmp_path / "walls")
    assert done.began is not None and done.ended is not None
    assert done.ended.how == "done", done.ended
    assert [tried.result.message for tried in done.tried] == [""] * len(done.tried)
    assert ("copied" in done.began.isolation) == is_staged


@pytest.mark.parametrize("name", NEEDED)
def test_what_labs_need_works_in_the_sandbox(
    name: str, session: Once, tmp_path: Path
) -> None:
    text = "import torch\nfrom given import plus_one\n\ndef prepare(n):\n"
    text += indent(NEEDED[name], "    ") + "\n    torch.cuda.synchronize()\n\n"
    text += "def run(state, x, factor, out, whole):\n"
    text += "    out.copy_(plus_one(x * factor)); whole.copy_(x)\n"
    said = session.tried_once(text)
    print(f"\n| {name} | {said or 'works'} |")
    if said:
        tell_walls(NEEDED[name], tmp_path / "walls")
    assert said == ""


class Once(Session):
    """Tries `prepare` of several sources in one process."""

    def tried_once(self, text: str) -> str:
        if not self.has_learner:
            self.start()
        problem = self._load("learner", text)
        if problem:
            # it may have been lost: the next source gets another one
            self._drop()
        return problem or self.tried(self._request.cases[0]).message


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Once]:
    loaded = write_lab(tmp_path_factory.mktemp("labs"))
    request = HostRequest(
        str(loaded.folder), RIGHT, tuple(public_cases(loaded.lab)[:1])
    )
    made = Once(request, loaded, Device())
    made.start()
    print(f"\n| {made.began()} |")
    yield made
    made.close()


def test_the_probe_sees_what_is_left_on_the_gpu(tmp_path: Path) -> None:
    loaded = write_lab(tmp_path)
    device = Device()
    probe = Probe(Tools(device))
    took = [probe._took() for _ in range(50)]
    print("\n| probe | spin us | copy us |")
    print("|---|---|---|")
    for name, pick in (("least", min), ("median", statistics.median), ("most", max)):
        spin, copy = (pick(times[i] for times in took) / 1e3 for i in range(2))
        print(f"| quiet, {name} | {spin:,.0f} | {copy:,.0f} |")
    assert all(probe.is_quiet() for _ in range(20))
    request = HostRequest(
        str(loaded.folder),
        LEAVES_WORK,
        tuple(public_cases(loaded.lab)[:1]),
        bounds=Bounds(run_s=20),
    )
    session = Once(request, loaded, device)
    try:
        assert session.start() == ""
        print(f"| {session.tried(request.cases[0]).message or 'right'} | | |")
        now = probe._took()
        print(
            f"| beside kernels | {now.spin_ns / 1e3:,.0f} | {now.copy_ns / 1e3:,.0f} |"
        )
        assert now.spin_ns > 1.5 * probe.quiet.spin_ns
    finally:
        session.close()


def test_a_right_source_is_timed_beside_itself(tmp_path: Path) -> None:
    write_lab(tmp_path, all_on_device=True, calls=4)
    folder = tmp_path / "halves"
    text = ON_THE_GPU.format(products=8)
    (folder / "reference.py").write_text(text, encoding="utf-8")
    loaded = load(folder)
    began_s = time.monotonic()
    result = run_on_gpu(gpu(), Submission(loaded, text), public_cases(loaded.lab), True)
    print(f"\n| one grading | {time.monotonic() - began_s:.1f} s |")
    print(f"| {result.right} of {result.of} | {result.speed} |")
    print(f"| {result.isolation} | {result.flags} |")
    assert result.right == result.of, result.cases
    assert result.speed is not None and result.speed.of_baseline is not None
    assert abs(result.speed.of_baseline.median - 1) < 0.02
