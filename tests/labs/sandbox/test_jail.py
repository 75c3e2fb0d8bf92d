"""A learner's source is compiled and run where it can do no harm."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest

from tests.programs import ROOT
from warpbook_labs.cases.execution import (
    BufferArgument,
    Launch,
    Memory,
    NumberArgument,
    Run,
)
from warpbook_labs.compiler.jobs import Compile, Compiled
from warpbook_labs.engines.interpreter.jobs import Interpret, Interpreted
from warpbook_labs.sandbox.parent import run
from warpbook_labs.sandbox.work import Limits, Refused, isolation_words

ADD = """
extern "C" __global__ void add(float* x, int n) {
    if (threadIdx.x < n) x[threadIdx.x] += 1;
}"""
#: what a process that got out of hand would try, each in a line of Python
ATTEMPTS = {
    "read a file": "open('/etc/passwd').read()",
    "list the root": "assert os.listdir('/')",
    "write a file": "open('/tmp/escaped', 'w').write('x')",
    "reach the network": "socket.socket().connect(('127.0.0.1', PORT))",
    "start a process": "os._exit(0) if os.fork() == 0 else os.wait()",
    "start a program": "os.execv('/bin/true', ['true'])",
    "take much memory": "bytearray(3 << 30)",
    "become root": "os.setuid(0)",
}


def compiled(source: str) -> str:
    result = run(Compile(source)).result
    assert isinstance(result, Compiled), result
    return result.ptx


def launch(ptx: str, values: np.ndarray, limits: Limits | None = None, **how: int):
    """Launch `add` with a buffer and its length."""
    arguments = (BufferArgument("x"), NumberArgument(np.int32(len(values)).tobytes()))
    memory = Memory("x", values.nbytes, values.tobytes())
    launches = (Launch("add", (1, 1, 1), (32, 1, 1), arguments),)
    return run(Interpret(ptx, (Run((memory,), launches),), **how), limits)


def test_a_kernel_is_compiled_and_run_and_the_card_can_say_where() -> None:
    values = np.arange(5, dtype=np.float32)
    outcome = launch(compiled(ADD), values)
    assert (outcome.status, outcome.tier) == ("done", "namespaces")
    assert isinstance(outcome.result, Interpreted)
    got = np.frombuffer(outcome.result.runs[0].memory[0].data or b"", np.float32)
    np.testing.assert_array_equal(got, values + 1)
    assert outcome.result.runs[0].reports[0].findings == []


def test_the_compiler_can_read_no_file(tmp_path: Path) -> None:
    secret = tmp_path / "hidden_cases.h"
    secret.write_text("the hidden seed is 4711")
    tmp_path.chmod(0o755)
    for path in (secret, Path("/etc/passwd"), Path("/proc/self/environ")):
        result = run(Compile(f'#include "{path}"\n{ADD}')).result
        assert isinstance(result, Refused)
        assert "cannot open source file" in result.message
        assert "4711" not in result.message and "root:" not in result.message


def attempts(user: int, before: str = "") -> dict[str, str]:
    """Shut a process of this user in, and give what its attempts came to."""
    script = f"""
import json, os, socket, sys
from pathlib import Path
from warpbook_labs.sandbox import confinement as confine
from warpbook_labs.sandbox.work import Limits, isolation_words
server = socket.create_server(("127.0.0.1", 0))
PORT = server.getsockname()[1]
os.setgid({user})
os.setuid({user})
{before}
tier, is_filtered = confine.confine(Limits(memory_bytes=1 << 30), Path(sys.argv[1]))
told = {{"tier": tier, "filtered": is_filtered}}
for name, attempt in {ATTEMPTS!r}.items():
    try:
        exec(attempt)
        told[name] = "done"
    except (OSError, MemoryError, AssertionError):
        told[name] = "refused"
sys.stdout.write(json.dumps(told))
sys.stdout.flush()
os._exit(0)
"""
    with tempfile.TemporaryDirectory() as empty:
        Path(empty).chmod(0o755)
        done = subprocess.run(
            [sys.executable, "-c", script, empty],
            env={"PYTHONPATH": str(ROOT / "labs"), "PATH": os.environ["PATH"]},
            capture_output=True,
        )
    assert done.returncode == 0, done.stderr.decode()
    outcomes: dict[str, str] = json.loads(done.stdout)
    return outcomes


@pytest.mark.parametrize("user", [0, 54321])
def test_a_process_that_gets_out_of_hand_gets_nowhere(user: int) -> None:
    refused = dict.fromkeys(ATTEMPTS, "refused")
    assert attempts(user) == {"tier": "namespaces", "filtered": True, **refused}


NO_FILTER = "confine.allow_few = lambda: False"
NO_NAMESPACES = "confine._enter_empty_root = lambda empty: False"
NO_LANDLOCK = "confine.allow_files = lambda allowed: False"


def test_each_of_the_layers_holds_where_another_is_missing() -> None:
    refused = dict.fromkeys(ATTEMPTS, "refused")
    unfiltered = {"filtered": False, **refused}
    assert attempts(0, NO_FILTER) == {"tier": "namespaces", **unfiltered}
    outcomes = attempts(54321, f"{NO_NAMESPACES}; {NO_FILTER}")
    # the network is shared then, which the words say
    assert outcomes.pop("reach the network") == "done"
    del unfiltered["reach the network"]
    assert outcomes == {"tier": "landlock", **unfiltered}
    outcomes = attempts(54321, f"{NO_NAMESPACES}; {NO_LANDLOCK}")
    assert outcomes == {"tier": "limits", "filtered": True, **refused}


def test_the_words_say_what_is_missing() -> None:
    assert "few system calls" in isolation_words("namespaces", True)
    assert "can't filter" in isolation_words("landlock", False)
    assert "can't isolate any further" in isolation_words("limits", False)


def test_a_kernel_that_never_ends_is_stopped_with_the_reason() -> None:
    ptx = compiled("""
extern "C" __global__ void add(volatile float* x, int n) {
    while (x[0] == 0) x[1] += 1;
}""")
    values = np.zeros(4, np.float32)
    by_processor = launch(ptx, values, Limits(processor_s=1), max_steps=10**9)
    assert (by_processor.status, by_processor.result) == ("timeout", None)
    assert "Timed out after 1 s of CPU time" in by_processor.message
    by_steps = launch(ptx, values, max_steps=10_000)
    assert isinstance(by_steps.result, Interpreted)
    assert by_steps.result.runs[0].reports[0].stopped


def test_a_source_that_explodes_and_a_kernel_that_wants_too_much_end_clearly() -> None:
    bomb = "#define A(x) x x x x x x x x\n" + "A(" * 10 + "int a;" + ")" * 10
    exploded = run(Compile(bomb), Limits(processor_s=5, memory_bytes=1 << 30))
    assert exploded.status != "done" or isinstance(exploded.result, Refused)
    huge = Interpret(compiled(ADD), (Run((Memory("x", 1 << 40),), ()),))
    result = run(huge).result
    assert isinstance(result, Interpreted)
    assert "too much to run without a GPU" in result.runs[0].refused
    tight = Limits(output_bytes=1000)
    assert launch(compiled(ADD), np.zeros(4096, np.float32), tight).status == (
        "too much output"
    )


def test_what_does_not_compile_is_told_by_the_compiler_with_its_line() -> None:
    result = run(Compile(ADD.replace("+= 1", "+= y"))).result
    assert isinstance(result, Refused)
    assert 'kernel.cu(3): error: identifier "y" is undefined' in result.message
    assert isinstance(run(Compile("\0")).result, Refused)
    assert isinstance(run(Compile("x" * 1_000_000)).result, Refused)
