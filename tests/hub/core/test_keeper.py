"""The keeper of GPUs, on a device node of its own in a GPU's place."""

from __future__ import annotations

import os
import pwd
import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.programs import environment, wait_for
from tests.stub_nvml import StubNvml
from warpbook.hub_protocol import Grant, KeptGpu, Orders
from warpbook_hub.keeper import acl, holders, loop
from warpbook_hub.keeper.gpus import Gpu, gpu_of, problem_of
from warpbook_hub.keeper.loop import Keeper

#: accounts that each system has, and that run nothing
HOLDER, OTHER = "games", "news"
needs_root = pytest.mark.skipif(
    os.geteuid() != 0, reason="only root makes device nodes and other accounts' lists"
)
#: opens what a GPU's node would be, says so, and stays; it may not end when asked to
HOLD = 'exec 3<"$0" || exit 1; trap "$1" TERM; echo open; while :; do sleep 0.1; done'


@pytest.fixture
def device() -> Iterator[str]:
    """A node of a device that nobody else has open: what is always full."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        path = f"{folder}/gpu0"
        os.mknod(path, stat.S_IFCHR | 0o660, os.makedev(1, 7))
        os.chmod(path, 0o660)
        yield path


@pytest.fixture
def children() -> Iterator[list[subprocess.Popen[str]]]:
    started: list[subprocess.Popen[str]] = []
    yield started
    for child in started:
        with child:
            child.kill()


def uid(name: str) -> int:
    return pwd.getpwnam(name).pw_uid


def may_open(path: str, name: str) -> bool:
    command = ["/bin/sh", "-c", 'exec 3<>"$0"', path]
    return (
        subprocess.run(
            command,
            user=uid(name),
            group=uid(name),
            extra_groups=[],
            stderr=subprocess.DEVNULL,
        ).returncode
        == 0
    )


def held_open(
    path: str, name: str, children: list[subprocess.Popen[str]], trap: str = "exit 7"
) -> subprocess.Popen[str]:
    child = subprocess.Popen(
        ["/bin/sh", "-c", HOLD, path, trap],
        user=uid(name),
        group=uid(name),
        extra_groups=[],
        stdout=subprocess.PIPE,
        text=True,
    )
    children.append(child)
    assert child.stdout is not None
    assert child.stdout.readline() == "open\n"
    return child


class Kept:
    """A keeper whose time a test moves."""

    def __init__(self, *paths: str, spared: frozenset[int] = frozenset()) -> None:
        self.now_s = 1000.0
        self.said: list[str] = []
        self.paths = paths
        self.keeper = Keeper(
            "node", paths, 600, spared, self.said.append, lambda: self.now_s
        )

    def turn(self, holder: str = "", left_s: float = 600.0) -> KeptGpu:
        """Look, be answered, and enforce; give what was seen before."""
        report = self.keeper.look()
        grants = ()
        if holder:
            grants = (Grant("l", report.gpus[0].gpu, holder, int(left_s * 1000)),)
        self.keeper.apply(Orders(grants), self.now_s)
        self.keeper.enforce()
        return report.gpus[0]

    def alone(self, seconds: float) -> KeptGpu:
        """Let time pass while the service is away."""
        self.now_s += seconds
        report = self.keeper.look()
        self.keeper.enforce()
        return report.gpus[0]


@needs_root
def test_a_grant_opens_the_device_at_once_to_one_account(device: str) -> None:
    kept = Kept(device)
    assert not may_open(device, HOLDER)
    assert kept.turn(HOLDER).is_clear
    assert (may_open(device, HOLDER), may_open(device, OTHER)) == (True, False)
    # which is not clear then, and is again once it was taken back
    assert not kept.turn().is_clear
    assert not may_open(device, HOLDER)
    assert kept.turn().is_clear


@needs_root
def test_what_has_it_open_is_asked_and_then_ended(device: str, children) -> None:
    kept = Kept(device)
    kept.turn(HOLDER)
    polite = held_open(device, HOLDER, children)
    stubborn = held_open(device, HOLDER, children, trap="")
    kept.turn(HOLDER)
    assert (polite.poll(), stubborn.poll()) == (None, None)
    kept.turn()
    assert polite.wait(120) == 7
    assert stubborn.poll() is None
    assert not kept.turn().is_clear
    kept.alone(loop.PATIENCE_S + 1)
    assert stubborn.wait(120) == -signal.SIGKILL
    wait_for("a clear device", lambda: kept.alone(1).is_clear or None)


@needs_root
def test_a_setuid_program_is_its_callers(device: str) -> None:
    """What a learner gives a descriptor to may act as root: it is ended, too."""
    kept = Kept(device)
    kept.turn(HOLDER)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setresuid(uid(HOLDER), 0, 0)
            os.open(device, os.O_RDWR)
            os.write(writer, b"open")
            signal.pause()
        finally:
            os._exit(1)
    os.close(writer)
    assert os.read(reader, 4) == b"open"
    os.close(reader)
    assert os.stat(f"/proc/{child}").st_uid == 0
    kept.turn()
    _, status = os.waitpid(child, 0)
    assert os.WTERMSIG(status) == signal.SIGTERM


@needs_root
def test_memory_that_is_mapped_holds_a_device(device: str, children) -> None:
    """A descriptor may be closed while what it mapped is used on."""
    path = f"{device}-zero"
    # of which memory can be mapped
    os.mknod(path, stat.S_IFCHR | 0o660, os.makedev(1, 5))
    os.chmod(path, 0o660)
    script = (
        "import ctypes, os, sys, time\n"
        "f = os.open(sys.argv[1], os.O_RDWR)\n"
        "mmap = ctypes.CDLL(None).mmap\n"
        "mmap.restype = ctypes.c_void_p\n"
        # to read, of its own
        "mmap(None, ctypes.c_size_t(4096), 1, 2, f, ctypes.c_long(0))\n"
        "os.close(f)\n"
        "print('open', flush=True)\n"
        "time.sleep(600)\n"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", script, path], stdout=subprocess.PIPE, text=True
    )
    children.append(child)
    assert child.stdout is not None and child.stdout.readline() == "open\n"
    assert child.pid not in {one.pid for one in holders.holders([path])[path]}
    assert holders.Holder(child.pid, 0) in holders.mapped(path)


@needs_root
def test_a_grant_ends_in_time_while_the_service_is_away(device: str, children) -> None:
    kept = Kept(device)
    kept.turn(HOLDER, left_s=60)
    child = held_open(device, HOLDER, children)
    kept.alone(59)
    assert may_open(device, HOLDER)
    kept.alone(1)
    assert not may_open(device, HOLDER)
    assert child.wait(120) == 7


@needs_root
def test_a_new_keeper_finds_what_the_killed_one_has_granted(
    device: str, children
) -> None:
    Kept(device).turn(HOLDER)
    child = held_open(device, HOLDER, children)
    anew = Kept(device)
    # without an answer it knows of no grant, so there is none
    assert not anew.alone(0).is_clear
    assert not may_open(device, HOLDER)
    assert child.wait(120) == 7


@needs_root
def test_the_list_is_restored_after_chmod_and_others_are_spared(
    device: str, children
) -> None:
    acl.let_in(device, uid(OTHER))
    grader = held_open(device, OTHER, children)
    kept = Kept(device, spared=frozenset({uid(OTHER)}))
    assert kept.turn(HOLDER).is_clear
    # which hides all accounts of the list behind its mask
    os.chmod(device, 0o600)
    assert not may_open(device, HOLDER)
    kept.turn(HOLDER)
    assert may_open(device, HOLDER)
    kept.turn()
    assert acl.users(device) == {uid(OTHER)}
    assert grader.poll() is None


@needs_root
def test_what_is_open_to_everybody_is_not_leased(device: str) -> None:
    os.chmod(device, 0o666)
    kept = Kept(device, f"{device}-gone")
    assert "open to everybody" in kept.turn(HOLDER).problem
    assert acl.users(device) == set()
    assert [device in words or "gone" in words for words in kept.said] == [True, True]


@needs_root
def test_stopping_takes_all_back(device: str, children) -> None:
    kept = Kept(device)
    kept.turn(HOLDER)
    child = held_open(device, HOLDER, children)
    kept.keeper.revoke_all()
    assert not may_open(device, HOLDER)
    assert child.wait(120) == 7


@needs_root
def test_who_has_no_account_gets_nothing(device: str) -> None:
    kept = Kept(device)
    kept.turn("no-such-account")
    kept.turn("root")
    assert acl.users(device) == set()
    assert kept.said == ["no-such-account: no account here."]


def test_a_file_is_no_device(tmp_path: Path) -> None:
    file = tmp_path / "gpu0"
    file.touch()
    assert "no device" in problem_of(str(file))
    assert "No such file" in problem_of(f"{file}-gone")
    assert gpu_of(str(file)) == Gpu(str(file), str(file), "gpu0")


#: NVML is loaded once in a process: what a stub answers is asked in another
ASK = """
import os, sys
from warpbook_hub.keeper import gpus
gpu = gpus.gpu_of("/dev/nvidia1")
print(gpu.id[:4], gpu.name, gpus.is_busy(gpu, os.getuid()), gpus.energy_mj(gpu))
"""


@pytest.mark.parametrize(("percent", "is_busy"), [(50, True), (0, False)])
def test_the_driver_tells_of_work_and_energy(
    stub_nvml_library: Path, tmp_path: Path, percent: int, is_busy: bool
) -> None:
    stub = StubNvml(stub_nvml_library, tmp_path / "state", "h200", "h200")
    stub.work(1, (os.getpid(), percent))
    stub.set(1, energy_mj=4_000)
    completed = subprocess.run(
        [sys.executable, "-c", ASK],
        env=environment(PYTHONPATH=os.pathsep.join(sys.path), **stub.env),
        capture_output=True,
        text=True,
        check=True,
    )
    assert completed.stdout.split() == [
        "GPU-",
        *completed.stdout.split()[1:-2],
        str(is_busy),
        "4000",
    ]
    assert "H200" in completed.stdout
