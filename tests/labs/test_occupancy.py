"""Occupancy is exactly NVIDIA's, and a real compile tells what goes into it."""

from __future__ import annotations

import pytest

from warpbook_labs.compiler.nvrtc import VERBOSE, compile_to_ptx
from warpbook_labs.results.occupancy import held, held_by_launches, read_log
from warpbook_profiler.facts.occupancy import MULTIPROCESSORS, occupancy

#: what `cuda_occupancy.h` of CUDA 13.0 gave, of 49,329 that were compared: compute
#: capability, threads, registers, bytes of shared memory, blocks
NVIDIA = """
75 32 160 0 12
75 63 106 0 8
75 63 250 3000 4
75 94 106 47000 1
75 162 88 1 3
75 199 124 0 2
75 347 97 0 1
75 458 97 48000 1
75 495 124 3000 1
75 569 25 0 1
75 569 70 1 1
75 791 70 20000 1
75 63 223 150000 0
75 791 196 1 0
80 1 25 0 32
80 125 97 1 4
80 162 25 3000 10
80 273 61 47000 3
80 273 124 0 1
80 458 61 48000 2
80 495 25 0 4
80 643 70 3000 1
80 717 43 20000 1
80 828 25 3000 2
80 828 43 90000 1
80 939 25 47000 2
80 310 241 90000 0
80 569 151 48000 0
86 1 61 3000 16
86 1 133 0 12
86 1 142 90000 1
86 1 160 90000 1
86 1 169 90000 1
86 125 178 48000 2
86 273 79 0 2
86 310 133 90000 1
86 495 70 48000 1
86 754 70 0 1
86 865 61 47000 1
86 1013 43 48000 1
86 680 115 150000 0
86 384 232 150000 0
89 1 124 47000 2
89 125 196 0 2
89 162 16 0 8
89 162 25 3000 8
89 199 79 20000 3
89 236 133 1 1
89 310 106 20000 1
89 347 70 1 2
89 384 25 90000 1
89 421 70 0 2
89 532 16 20000 2
89 865 16 0 1
89 902 232 3000 0
89 976 151 47000 0
90 32 178 47000 4
90 63 25 0 32
90 94 43 48000 4
90 125 250 220000 1
90 162 160 20000 2
90 347 43 3000 3
90 421 34 20000 3
90 421 88 3000 1
90 532 70 20000 1
90 569 70 1 1
90 828 34 20000 1
90 976 52 90000 1
90 976 196 20000 0
90 976 151 90000 0
100 94 61 20000 10
100 125 205 3000 2
100 162 43 0 6
100 236 43 0 5
100 273 115 220000 1
100 273 151 0 1
100 384 16 20000 5
100 458 88 0 1
100 754 43 90000 1
100 865 61 48000 1
100 939 61 3000 1
100 1013 61 1 1
100 791 214 3000 0
100 791 232 220000 0
120 1 196 1 8
120 94 196 1 2
120 162 79 0 4
120 236 241 48000 1
120 273 142 1 1
120 310 43 20000 4
120 310 97 20000 1
120 384 142 0 1
120 495 115 0 1
120 606 43 47000 2
120 791 70 90000 1
120 939 34 3000 1
120 865 178 47000 0
120 791 151 47000 0
"""
SOURCE = """
extern "C" __global__ void plain(float* x) {
    __shared__ float held[1024];
    held[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    x[threadIdx.x] = held[255 - threadIdx.x];
}
extern "C" __global__ void __launch_bounds__(1024, 2) spills(float* x, int n) {
    float a[40];
    for (int i = 0; i < 40; i++) a[i] = x[i * n];
    for (int k = 0; k < n; k++)
        for (int i = 0; i < 40; i++) a[i] = a[i] * a[(i + 7) % 40] + x[k];
    for (int i = 0; i < 40; i++) x[i * n] = a[i];
}"""


@pytest.mark.parametrize("row", NVIDIA.split("\n")[1:-1])
def test_as_many_blocks_fit_as_in_nvidias_own_calculator(row: str) -> None:
    capability, threads, registers, shared_bytes, blocks = map(int, row.split())
    room = MULTIPROCESSORS[divmod(capability, 10)]
    fitting = occupancy(room, threads, registers, shared_bytes)
    assert fitting.blocks == blocks
    assert bool(fitting.limited_by) == bool(blocks)


@pytest.mark.parametrize("architecture", ["sm_80", "sm_90", "sm_120"])
def test_a_real_compile_tells_registers_spills_and_shared_memory(
    architecture: str,
) -> None:
    compiled = compile_to_ptx(SOURCE + "\n// tail", architecture, (VERBOSE,))
    resources, rest = read_log(compiled.log)
    # 2 blocks of 1024 threads are more than an sm_120 has room for, which it says
    assert ("minnctapersm" in rest) == (architecture == "sm_120")
    plain, spills = resources["plain"], resources["spills"]
    assert (plain.shared_bytes, plain.spill_store_bytes) == (4096, 0)
    assert plain.architecture == architecture and 0 < plain.registers <= 40
    if architecture != "sm_120":
        # 1024 threads twice leave 32 registers to a thread, for 40 numbers
        assert spills.registers == 32 and spills.spill_store_bytes > 0
    [first, second] = held_by_launches(
        resources, [("plain", 256, 0), ("plain", 256, 0), ("spills", 1024, 0)]
    )
    assert first.occupancy == 1.0 and "threads" in first.limited_by
    assert second.blocks == (1 if architecture == "sm_120" else 2)


def test_warnings_are_left_when_ptxas_is_cut_out_and_what_is_not_known_is_not_told():
    warning = "kernel.cu(3): warning #177-D: variable was declared\n"
    compiled = compile_to_ptx(SOURCE, "sm_90", (VERBOSE,))
    resources, rest = read_log(warning + compiled.log)
    assert rest == warning.strip() and set(resources) == {"plain", "spills"}
    assert read_log("ptxas info : Compiling entry function 'f' for 'sm_90'\n") == (
        {},
        "",
    )
    odd = resources["plain"].__class__("f", "sm_999", 8, 0, 0, 0, 0)
    assert held(odd, 256) is None
