"""Twelve kernels with one fault each, on the GPU of this process."""

import importlib
from collections.abc import Callable
from functools import cache

import torch

from tests.gpu.stalls import triton_kernels as triton
from tests.gpu.stalls.planted import SOURCES
from warpbook_profiler.model.stalls import Stalls
from warpbook_profiler.stalls.attribution import stalls_of
from warpbook_profiler.stalls.cubins import loaded_cubins
from warpbook_profiler.stalls.sampler import sampling
from warpbook_profiler.stalls.sources import source_at

cupy = importlib.import_module("cupy")
#: by CUPTI's number, as far as they were looked for
known_cubins: dict[int, bytes] = {}


@cache
def runs() -> dict[str, Callable[[], object]]:
    """Return what launches each kernel once."""
    return {**_cuda(), **_triton()}


def stalls(name: str) -> Stalls:
    """Sample one launch."""
    run = runs()[name]
    with sampling(10) as samples:
        run()
        torch.cuda.synchronize()
    missing = {crc for crc, _ in samples.kernels} - known_cubins.keys()
    if missing:
        known_cubins.update(loaded_cubins(missing))
    return stalls_of(samples, known_cubins, source_at, "")


def _cuda() -> dict[str, Callable[[], object]]:
    code = SOURCES["cuda"].read_text()
    module = cupy.RawModule(code=code, options=("-lineinfo", "-std=c++17"))
    floats = cupy.random.rand(1 << 22, dtype=cupy.float32)
    doubles = cupy.random.rand(1 << 22)
    out, double_out = cupy.empty_like(floats), cupy.empty_like(doubles)
    around = cupy.random.permutation(1 << 24).astype(cupy.int32)
    ints = cupy.empty(1 << 22, cupy.int32)

    def launches(name: str, grid: int, block: int, *given: object):
        kernel = module.get_function(name)
        return lambda: kernel((grid,), (block,), given)

    number = cupy.int32
    return {
        "bank_conflicts": launches(
            "bank_conflicts", 1024, 1024, floats, out, number(512)
        ),
        "one_busy_warp": launches("one_busy_warp", 1056, 256, floats, out, number(50)),
        "double_division": launches(
            "double_division", 4096, 256, doubles, double_out, number(200)
        ),
        "spilled": launches("spilled", 1024, 1024, floats, out, number(20)),
        "long_chain": launches("long_chain", 132, 128, floats, out, number(200_000)),
        "small_grid": launches("small_grid", 133, 256, around, ints, number(4096)),
    }


def _triton() -> dict[str, Callable[[], object]]:
    big = torch.randn(1 << 25, device="cuda")
    out = torch.empty(1 << 22, device="cuda")
    ints = torch.zeros(1 << 22, dtype=torch.int32, device="cuda")
    few = torch.zeros(4, dtype=torch.int32, device="cuda")
    around = torch.randperm(1 << 24, device="cuda", dtype=torch.int32)
    keep = (torch.rand(1 << 24, device="cuda") < 0.1).to(torch.int32)
    return {
        "strided": lambda: triton.strided[(8192,)](big, out, 16, 256),
        "few_addresses": lambda: triton.few_addresses[(1024,)](few, ints, 8, 256),
        "special_functions": lambda: triton.special_functions[(4096,)](
            big, out, 200, 1024
        ),
        "gather": lambda: triton.gather[(4096,)](big, around, out, 16, 1024),
        "masked": lambda: triton.masked[(4096,)](big, keep, out, 16, 1024),
        "few_warps": lambda: triton.few_warps[(132,)](
            around, ints, 2000, 32, num_warps=1
        ),
    }
