"""Triton's interpreter computes with bfloat16 and TF32 as a GPU does."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import torch

from warpbook_labs.engines.interpreter.triton.patches import narrowed, widened

#: in a process of its own: Triton decides at its start whether it interprets
SCRIPT = '''
import sys
import numpy as np
from warpbook_labs.cases import execution
from warpbook_labs.engines.interpreter import jobs
from warpbook_labs.engines.interpreter.triton import running

running.prepare()
SOURCE = """
import triton
import triton.language as tl

@triton.jit
def put(out, row, values):
    i = tl.arange(0, 16)
    tl.store(out + row * 16 + i, tl.zeros((16,), tl.float32) + values.to(tl.float32))

@triton.jit
def compute(x, out):
    i = tl.arange(0, 16)
    exact = tl.load(x + i)
    v = exact.to(tl.bfloat16)
    u = tl.full((16,), 1.5, tl.bfloat16)
    put(out, 0, v)
    put(out, 1, v + u)
    put(out, 2, v * u)
    put(out, 3, u - v)
    put(out, 4, -v)
    put(out, 5, tl.abs(v))
    put(out, 6, tl.maximum(v, u))
    put(out, 7, tl.where(v > u, v, u))
    put(out, 8, tl.fma(v, u, v))
    put(out, 9, tl.sum(v, axis=0))
    put(out, 10, tl.max(v, axis=0))
    put(out, 11, tl.argmax(v, axis=0))
    put(out, 12, tl.sort(v))
    put(out, 13, tl.exp(v.to(tl.float32)).to(tl.bfloat16))
    put(out, 14, v.to(tl.int32))
    put(out, 15, (i * 1000 + 1).to(tl.bfloat16))
    ones = tl.full((16, 16), 1, tl.bfloat16)
    total = tl.zeros((16, 16), tl.float32) + 0.25
    both = v[:, None] + tl.zeros((16, 16), tl.bfloat16)
    put(out, 16, tl.max(tl.dot(both, ones, total), axis=1))
    single = exact[:, None] + tl.zeros((16, 16), tl.float32)
    only = tl.where(i[:, None] == 0, 1.0, tl.zeros((16, 16), tl.float32))
    put(out, 17, tl.max(tl.dot(single, only), axis=1))
    put(out, 18, tl.max(tl.dot(single, only, input_precision="ieee"), axis=1))
    put(out, 19, tl.load(x + i, mask=i < 14))
    one = tl.arange(0, 1)
    put(out, 20, tl.load(x + one, mask=one < 0, other=0.0))
"""
x = np.frombuffer(sys.stdin.buffer.read(), np.float32)
run = execution.Run(
    (
        execution.Memory("x", 64, x.tobytes(), dtype="float32"),
        execution.Memory("out", 21 * 64, dtype="float32"),
    ),
    (
        execution.Launch(
            "compute",
            (1, 1, 1),
            (128, 1, 1),
            (execution.BufferArgument("x"), execution.BufferArgument("out")),
        ),
    ),
)
(ran,) = running.do(jobs.InterpretTriton(SOURCE, (run,))).runs
assert not ran.refused, ran.refused
sys.stdout.buffer.write(next(each.data for each in ran.memory if each.name == "out"))
'''


def test_numbers_are_those_of_a_gpu() -> None:
    x = 3 * np.random.default_rng(0).standard_normal(16).astype(np.float32)
    ended = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        input=x.tobytes(),
        capture_output=True,
        timeout=120,
    )
    # how it ends tells nothing: its clock goes on
    assert ended.stdout, ended.stderr.decode()
    got = np.frombuffer(ended.stdout, np.float32).reshape(21, 16)
    v = torch.tensor(x).bfloat16()
    u = torch.full((16,), 1.5, dtype=torch.bfloat16)
    once = (v.float() * 1.5 + v.float()).bfloat16()
    counted = (torch.arange(16) * 1000 + 1).bfloat16()
    right = [
        *(v, v + u, v * u, u - v, -v, v.abs()),
        *(torch.maximum(v, u), torch.maximum(v, u), once),
        *(v.sum(), v.max(), v.argmax(), v.sort().values),
        *(v.float().exp().bfloat16(), v.int(), counted, 16 * v.float() + 0.25),
    ]
    for row, (result, wanted) in enumerate(zip(got, right, strict=False)):
        np.testing.assert_array_equal(result, wanted.float().expand(16), f"{row}")
    # tensor cores leave 13 places of FP32 out
    cut_off = (x.view(np.uint32) >> 13 << 13).view(np.float32)
    np.testing.assert_array_equal(got[17], cut_off)
    np.testing.assert_array_equal(got[18], x)
    # what a mask leaves out and `other` does not give is anything
    np.testing.assert_array_equal(got[19], [*x[:14], np.inf, -np.inf])
    np.testing.assert_array_equal(got[20], np.zeros(16))


@pytest.mark.parametrize("step", [1, 0x3FFF, 0x8000, 0xFFFF])
def test_to_bfloat16_is_rounded_to_the_nearest_and_halves_to_even(step: int) -> None:
    # numbers of every size, subnormal and infinite ones, and NaN
    bits = np.arange(0, 1 << 32, (1 << 16) + step, dtype=np.uint64).astype(np.uint32)
    numbers = bits.view(np.float32)
    right = torch.from_numpy(numbers.copy()).bfloat16().float().numpy()
    np.testing.assert_array_equal(widened(narrowed(numbers)), right)
