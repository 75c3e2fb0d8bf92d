"""Forks, threads and neighbours of a profiled cell on a real GPU.

    pytest -m gpu -s tests/gpu/test_gpuprof_hazards.py

Each test has kernels of its own and a time after which a hang is told as one.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from jupyter_core.utils import ensure_event_loop

from tests.gpu.notebook import Notebook, open_notebook

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(600)]

SETUP = """
import torch
x = torch.zeros(8, device="cuda")
x.add_(1)
torch.cuda.synchronize()
"""


def assert_profiles_as_ever(notebook: Notebook) -> None:
    cell_profile = notebook.profile("for _ in range(30): x.add_(1)")
    complete = cell_profile["completeness"]
    assert (
        cell_profile["kernel_calls"]
        == complete["matched"]
        == complete["launches"]
        == 30
    )


def test_two_kernels_profile_one_gpu_at_once(notebook: Notebook) -> None:
    """Each sees its own kernels, all of them and no others."""

    def profiles(mine: Notebook, count: int) -> list[int]:
        cell = f"for _ in range({count}): x.add_(1)"
        try:
            of_ten = [mine.profile(cell) for _ in range(10)]
        finally:
            # the client's, of this thread
            ensure_event_loop().close()
        assert {profile["completeness"]["matched"] for profile in of_ten} == {count}
        return [profile["kernel_calls"] for profile in of_ten]

    with open_notebook() as other, ThreadPoolExecutor(2) as pool:
        for used in (notebook, other):
            used.run(SETUP)
        one = pool.submit(profiles, notebook, 20_000)
        two = pool.submit(profiles, other, 15_000)
        assert one.result() == [20_000] * 10
        assert two.result() == [15_000] * 10


def test_a_fork_in_a_cell_spoils_nothing(notebook: Notebook) -> None:
    """As a loader's workers, which leave CUDA alone."""
    notebook.run(SETUP + "import multiprocessing\n")
    cell_profile = notebook.profile(
        "def work(): torch.ones(1000).cumsum(0)\n"
        "fork = multiprocessing.get_context('fork')\n"
        "children = [fork.Process(target=work) for _ in range(3)]\n"
        "for each in children: x.add_(1); each.start()\n"
        "for each in children: each.join()\n"
        "x.add_(1);"
    )
    assert notebook.value("[each.exitcode for each in children]") == [0, 0, 0]
    assert cell_profile["kernel_calls"] == cell_profile["completeness"]["matched"] == 4
    assert_profiles_as_ever(notebook)


def test_work_of_other_threads_is_seen_on_the_gpu(notebook: Notebook) -> None:
    notebook.run(SETUP + "import threading\n")
    cell_profile = notebook.profile(
        "def work():\n"
        "    for _ in range(50): x.add_(1)\n"
        "threads = [threading.Thread(target=work) for _ in range(4)]\n"
        "for each in threads: each.start()\n"
        "for each in threads: each.join()"
    )
    assert (
        cell_profile["kernel_calls"] == cell_profile["completeness"]["matched"] == 200
    )
    assert_profiles_as_ever(notebook)


def test_a_profile_in_a_thread_is_whole_or_says_that_it_is_not(
    notebook: Notebook,
) -> None:
    """CUPTI records nothing on a thread that did not set it up."""
    notebook.run(SETUP + "import threading, warpbook\n")
    assert_profiles_as_ever(notebook)
    notebook.run(
        "found = []\n"
        "def work():\n"
        "    for _ in range(3):\n"
        "        with warpbook.profile(quiet=True) as block:\n"
        "            for _ in range(40): x.add_(1)\n"
        "        found.append(block.profile)\n"
        "thread = threading.Thread(target=work)\n"
        "thread.start(); thread.join()"
    )
    for at in range(3):
        profile = notebook.profiled(f"found[{at}]")
        if profile["kernel_calls"] != 40:
            assert profile["gpu_busy_ns"] is None or profile["completeness"]["refusal"]
            assert profile["completeness"]["warnings"]
            assert profile["verdict"]["kind"] == "unknown"
    # what it does to later profiles on the kernel's own thread is printed
    later = notebook.profile("for _ in range(30): x.add_(1)")
    assert later["kernel_calls"] == 30 or later["completeness"]["warnings"]


def test_the_users_own_profiler_works_before_and_after(notebook: Notebook) -> None:
    notebook.run(SETUP + "from torch.profiler import profile\n")
    theirs = (
        "with profile() as theirs:\n"
        "    for _ in range(60): x.add_(1)\n"
        "    torch.cuda.synchronize()\n"
        "kernels = sum(each.count for each in theirs.key_averages()\n"
        "              if 'elementwise' in each.key)"
    )
    for _ in range(3):
        notebook.run(theirs)
        assert notebook.value("kernels") == 60
        assert_profiles_as_ever(notebook)


def test_the_users_own_profiles_in_a_row_see_the_gpu_after_ours(
    notebook: Notebook,
) -> None:
    """Letting CUPTI go is for the end of ours; left on, theirs would lose events."""
    notebook.run(SETUP + "from torch.profiler import profile\n")
    assert_profiles_as_ever(notebook)
    notebook.run(
        "kernels = []\n"
        "for _ in range(6):\n"
        "    with profile() as theirs:\n"
        "        for _ in range(60): x.add_(1)\n"
        "        torch.cuda.synchronize()\n"
        "    found = theirs.profiler.kineto_results.events()\n"
        "    kernels.append(sum('elementwise' in each.name() for each in found))"
    )
    assert notebook.value("kernels") == [60] * 6
    assert_profiles_as_ever(notebook)
    # at once, with no call of CUDA between the two
    notebook.run(
        "import warpbook\n"
        "with warpbook.profile(quiet=True) as ours:\n"
        "    for _ in range(30): x.add_(1)\n"
        "with profile() as theirs:\n"
        "    for _ in range(60): x.add_(1)\n"
        "    torch.cuda.synchronize()\n"
        "found = theirs.profiler.kineto_results.events()\n"
        "kernels = sum('elementwise' in each.name() for each in found)"
    )
    assert notebook.value("kernels") == 60


def test_shapes_and_kinds_of_events_are_read(notebook: Notebook) -> None:
    """What this version of torch tells: printed, so that a newer one is noticed."""
    notebook.run(SETUP)
    cell_profile = notebook.profile(
        "with torch.profiler.record_function('mine'):\n"
        "    y = torch.ones(1 << 20, device='cuda').cpu()"
    )
    kinds = notebook.value(
        "sorted(name for name in dir(torch._C._autograd._KinetoEvent)"
        " if not name.startswith('__'))"
    )
    print(f"torch {notebook.value('torch.__version__')}: {kinds}")
    assert cell_profile["kernel_calls"] == 1
    assert not [row for row in cell_profile["kernels"] if row["name"] == "mine"]
    (copy,) = cell_profile["copies"]
    assert copy["size_bytes"] in (4 << 20, None)
