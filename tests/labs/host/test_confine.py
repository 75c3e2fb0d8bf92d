"""What CUDA needs of a process whose files are closed before it starts.

Its driver (570 and later) names its threads in /proc and does not begin where it can't;
another process's memory is opened by a socket of that process without a file.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys

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
