"""Triton's interpreter is mended where an older one fails with a newer NumPy."""

from __future__ import annotations

import subprocess
import sys

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
