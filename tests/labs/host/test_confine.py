"""What CUDA needs of a process whose files are closed before it starts.

Its driver (570 and later) names its threads in /proc and does not begin where it can't;
another process's memory is opened by a socket of that process without a file.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

import pytest

import warpbook_labs

AS_CUDA_DOES = """
import os, socket, sys, threading
from warpbook_labs.sandbox import gpu_confinement as confine
from warpbook_labs.sandbox import linux

linux.die_with_parent()
confine.close_files(())
names = []

def named():
    with open(f"/proc/self/task/{threading.get_native_id()}/comm", "w") as file:
        file.write("cuda-EvtHandlr")
    with open(f"/proc/self/task/{threading.get_native_id()}/comm") as file:
        names.append(file.read().strip())

thread = threading.Thread(target=named)
thread.start()
thread.join()
try:
    open(f"/proc/{os.getppid()}/comm").read()
    names.append("the parent's")
except PermissionError:
    pass
other = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
other.connect(chr(0) + sys.argv[1])
print(*names, other.recv(9).decode())
"""


def test_threads_are_named_and_the_owner_of_memory_is_asked() -> None:
    name = f"warpbook-test-{os.getpid()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listening:
        listening.bind(f"\0{name}")
        listening.listen()
        with subprocess.Popen(
            [sys.executable, "-c", AS_CUDA_DOES, name],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        ) as child:
            listening.settimeout(120)
            try:
                peer, _ = listening.accept()
            except TimeoutError:
                child.kill()
            else:
                with peer:
                    peer.send(b"a handle")
            said, wrong = child.communicate(timeout=120)
    assert said.split() == ["cuda-EvtHandlr", "a", "handle"], wrong


READS = """
import importlib, sys
from warpbook_labs.sandbox import gpu_confinement as confine

if not confine.close_files(sys.argv[2:]):
    sys.exit(77)
importlib.import_module("colorsys")
importlib.import_module("warpbook_labs.grading.table")
open("/proc/self/status").read()
try:
    print(open(sys.argv[1]).read())
except PermissionError:
    print("closed")
"""
#: where a vault may be put: beside Python, beside a package's folder, among packages
PLACES = {
    "beside Python": sys.prefix,
    "beside sources": str(Path(warpbook_labs.__file__).parents[1]),
    "among packages": sysconfig.get_path("purelib"),
}


@pytest.mark.parametrize("place", PLACES)
def test_a_child_reads_what_it_is_given_and_no_vault_beside_it(place: str) -> None:
    with tempfile.TemporaryDirectory(prefix="vault-", dir=PLACES[place]) as vault:
        cases = Path(vault) / "track" / "lab" / "cases.py"
        cases.parent.mkdir(parents=True)
        cases.write_text("what is right")
        # only among Python's own packages it must be said what a vault is
        hidden = [vault] if place == "among packages" else []
        ended = subprocess.run(
            [sys.executable, "-c", READS, cases, *hidden],
            capture_output=True,
            text=True,
            timeout=120,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )
    if ended.returncode == 77:
        pytest.skip("this system has no Landlock")
    assert ended.stdout.strip() == "closed", ended.stderr
