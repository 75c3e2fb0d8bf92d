"""Older versions of Triton are mended: its interpreter, and its own functions."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

#: in a process of its own: Triton decides at its start whether it interprets
SCRIPT = '''
import numpy as np
from warpbook_labs.cases import execution
from warpbook_labs.engines.interpreter import jobs
from warpbook_labs.engines.interpreter.triton import running

running.load_triton(is_interpreted=True)
from triton.runtime import interpreter

newer = interpreter._patch_lang_tensor

def of_triton_3_6(tensor, scope):
    newer(tensor, scope)
    scope.set_attr(tensor, "__index__", lambda self: as_numpy_2_4(self.handle.data))

def as_numpy_2_4(array):
    if array.ndim:
        raise TypeError("only 0-dimensional arrays can be converted")
    return int(array)

interpreter._patch_lang_tensor = of_triton_3_6
running.prepare()

SOURCE = """
import triton
import triton.language as tl

@triton.jit
def below(n):
    total = 0
    for k in range(n):
        total += k
    return total

@triton.jit
def count(limits, out, n):
    rounds = 0
    for k in range(0, n):
        for j in range(tl.program_id(0), tl.load(limits + k), 2):
            rounds += 1
    tl.store(out, rounds + 100 * below(n) + 10_000 * int(n))
"""
limits = np.array([1, 2, 3, 40], np.int32)
run = execution.Run(
    (
        execution.Memory("limits", 16, limits.tobytes(), dtype="int32"),
        execution.Memory("out", 4, dtype="int32"),
    ),
    (
        execution.Launch(
            "count",
            (1, 1, 1),
            (128, 1, 1),
            (
                execution.BufferArgument("limits"),
                execution.BufferArgument("out"),
                execution.IntegerArgument(4),
            ),
        ),
    ),
)
(ran,) = running.do(jobs.InterpretTriton(SOURCE, (run,))).runs
print(ran.refused or int(np.frombuffer(ran.memory[1].data, np.int32)[0]))
'''


def test_loops_end_at_values_as_triton_3_6_has_them_with_a_newer_numpy() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=120
    )
    # 1 + 1 + 2 + 20 rounds, 0 + 1 + 2 + 3 below 4, and 4 itself
    assert ended.stdout.strip() == "40624", ended.stderr


#: as it stands in Triton 3.6, in short: without `dim` it compares with None
OLDER_FLIP = """
import triton
from triton.language import core

@triton.jit
def flip(x, dim=None):
    core.static_assert(-len(x.shape) <= dim and dim < len(x.shape))
    back: core.constexpr = x.shape[dim]
    return core.gather(x, back - 1 - core.arange(0, back), 0)
"""
OF_FLIP = '''
import importlib
import sys

import numpy as np
from warpbook_labs.cases import execution
from warpbook_labs.compiler.jobs import CompileTriton, Variant
from warpbook_labs.engines.interpreter import jobs
from warpbook_labs.engines.interpreter.triton import compiling, running

is_interpreted = sys.argv[1] == "interpret"
running.load_triton(is_interpreted)
sys.path.insert(0, sys.argv[2])
language = importlib.import_module("triton.language")
language.flip = language.standard.flip = importlib.import_module("older").flip

SOURCE = """
import triton
import triton.language as tl

@triton.jit
def turn(x, out):
    i = tl.arange(0, 64)
    tl.store(out + i, tl.flip(tl.load(x + i)))
"""
if not is_interpreted:
    variant = Variant("turn", "turn", ("*int32", "*int32"), ())
    job = CompileTriton(SOURCE, "sm_90", (variant,))
    # as it is before it is mended
    print(compiling.do(job))
    compiling.prepare()
    print(".entry turn" in compiling.do(job).ptx)
else:
    running.prepare()
    numbers = np.arange(64, dtype=np.int32)
    memory = (
        execution.Memory("x", 256, numbers.tobytes(), dtype="int32"),
        execution.Memory("out", 256, dtype="int32"),
    )
    arguments = tuple(map(execution.BufferArgument, ("x", "out")))
    launch = execution.Launch("turn", (1, 1, 1), (128, 1, 1), arguments)
    run = execution.Run(memory, (launch,))
    (ran,) = running.do(jobs.InterpretTriton(SOURCE, (run,))).runs
    found = ran.refused or np.frombuffer(ran.memory[1].data, np.int32)[:3].tolist()
    print(found)
'''


@pytest.mark.parametrize(
    ("how", "said"), [("compile", "True"), ("interpret", "[63, 62, 61]")]
)
def test_flip_needs_no_dim_as_it_does_in_triton_3_6(
    how: str, said: str, tmp_path: Path
) -> None:
    (tmp_path / "older.py").write_text(OLDER_FLIP)
    ended = subprocess.run(
        [sys.executable, "-c", OF_FLIP, how, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=120,
    )
    lines = ended.stdout.splitlines()
    assert lines[-1:] == [said], ended.stderr
    if how == "compile":
        # what fails within Triton's library is told with the line that calls it
        assert "Line 8: '<=' not supported" in lines[0]
