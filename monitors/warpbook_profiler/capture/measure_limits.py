"""Measures what the GPUs here reach. `python -m` this, apart from every other process.

The fastest of several turns counts: a ceiling is what was reached, not what is usual.
Matrices are random, because zeros draw less power and run faster than real work.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable

import msgspec
import torch

from warpbook_monitors.errors import MonitorError
from warpbook_monitors.nvml.gate import call
from warpbook_profiler.capture.limits import Answer, Limits, load, save

_MIB = 2**20
_COPY_BYTES = 1024 * _MIB
#: less would stay in the chip's cache
_LEAST_COPY_BYTES = 256 * _MIB
_IDLE_PERCENT = 5
_LARGEST_SIDE = 8192
#: a product should take no longer, so that a small GPU is done in time
_PRODUCT_S = 0.05
_TURNS = 8
_TURN_S = 0.03
_LAUNCHES = 2000

Product = Callable[[], object]


class _NotNow(Exception):
    """A GPU that can't be measured as things are; the message says what to do."""


def main(again: bool) -> Answer:
    """Measure every GPU that was not measured before."""
    if not torch.cuda.is_available():
        return Answer(problem=f"torch {torch.__version__} finds no GPU here.")
    driver = _driver()
    measured = []
    for index in range(torch.cuda.device_count()):
        # torch before 2.5 does not tell it
        properties = torch.cuda.get_device_properties(index)
        uuid = f"GPU-{getattr(properties, 'uuid', index)}"
        limits = None if again else load(uuid, driver)
        if limits is None:
            try:
                limits = _measure(index, uuid, driver)
                save(limits)
            except _NotNow as reason:
                return Answer(problem=f"GPU {index} {reason}")
            except OSError as problem:
                return Answer(problem=f"they can't be kept: {problem}.")
        measured.append(limits)
    return Answer(tuple(measured))


def _driver() -> str | None:
    try:
        return str(call("nvmlSystemGetDriverVersion"))
    except MonitorError:
        return None


def _measure(index: int, uuid: str, driver: str | None) -> Limits:
    if _is_busy(uuid):
        raise _NotNow("is in use. Let that end first: it would count as the limit.")
    with torch.cuda.device(index), torch.inference_mode():
        if torch.cuda.mem_get_info()[0] < 8 * _LEAST_COPY_BYTES:
            raise _NotNow("has too little free memory. Stop what holds it.")
        memory, to_device, to_host = _copies()
        return Limits(
            uuid=uuid,
            gpu=torch.cuda.get_device_name(),
            driver=driver,
            torch=str(torch.__version__),
            measured_ms=time.time() * 1000,
            memory_bytes_per_s=memory,
            host_to_device_bytes_per_s=to_device,
            device_to_host_bytes_per_s=to_host,
            flops_per_s=_products(),
            launch_ns=_launch_ns(),
            round_trip_ns=_round_trip_ns(),
        )


def _is_busy(uuid: str) -> bool:
    try:
        gpu = call("nvmlDeviceGetHandleByUUID", uuid.encode())
        return int(call("nvmlDeviceGetUtilizationRates", gpu).gpu) > _IDLE_PERCENT
    except MonitorError:
        return False  # it does not tell


def _copies() -> tuple[float, float, float]:
    """Give the bytes per second within the device, to it, and from it."""
    size_bytes = min(_COPY_BYTES, torch.cuda.mem_get_info()[0] // 8)
    one = torch.empty(size_bytes, dtype=torch.uint8, device="cuda")
    other = torch.empty_like(one)
    pinned = torch.empty(size_bytes, dtype=torch.uint8, pin_memory=True)
    return (
        2 * size_bytes / _fastest_s(lambda: other.copy_(one)),
        size_bytes / _fastest_s(lambda: one.copy_(pinned, non_blocking=True)),
        size_bytes / _fastest_s(lambda: pinned.copy_(one, non_blocking=True)),
    )


def _products() -> dict[str, float]:
    """Multiply square matrices of every dtype that the chip has a unit for."""
    capability = torch.cuda.get_device_capability()
    plain = {"double": torch.float64, "float": torch.float32, "c10::Half": torch.half}
    if capability >= (8, 0):
        plain["c10::BFloat16"] = torch.bfloat16
    makers = {name: _plain(dtype) for name, dtype in plain.items()}
    if capability >= (8, 0):
        makers["tf32"] = _plain(torch.float32)
    if capability >= (7, 5):
        makers["signed char"] = _int8
    if capability >= (8, 9):
        makers["c10::Float8_e4m3fn"] = _fp8
    before = torch.get_float32_matmul_precision()
    rates = {}
    for name, make in makers.items():
        torch.set_float32_matmul_precision("high" if name == "tf32" else "highest")
        try:
            rates[name] = _flops_per_s(make)
        except torch.cuda.OutOfMemoryError:
            raise _NotNow("ran out of memory. Stop what holds it.") from None
        except RuntimeError:
            continue  # this torch has no such product for this chip
    torch.set_float32_matmul_precision(before)
    return rates


def _flops_per_s(make: Callable[[int], Product]) -> float:
    side = 1024
    while True:
        took_s = _fastest_s(make(side))
        # twice the side is eight times the work
        if side >= _LARGEST_SIDE or 8 * took_s > _PRODUCT_S:
            return 2 * side**3 / took_s
        side *= 2


def _plain(dtype: torch.dtype) -> Callable[[int], Product]:
    def make(side: int) -> Product:
        a = torch.randn(side, side, device="cuda").to(dtype)
        b = torch.randn(side, side, device="cuda").to(dtype)
        out = torch.empty_like(a)
        return lambda: torch.mm(a, b, out=out)

    return make


def _int8(side: int) -> Product:
    a = torch.randint(-128, 127, (side, side), dtype=torch.int8, device="cuda")
    # the tensor cores want the second one by columns
    b = a.clone().t()
    return lambda: torch._int_mm(a, b)


def _fp8(side: int) -> Product:
    a = torch.randn(side, side, device="cuda").to(torch.float8_e4m3fn)
    b = torch.randn(side, side, device="cuda").to(torch.float8_e4m3fn).t()
    one = torch.ones((), device="cuda")
    return lambda: torch._scaled_mm(
        a, b, scale_a=one, scale_b=one, out_dtype=torch.bfloat16, use_fast_accum=True
    )


def _fastest_s(work: Product) -> float:
    """Time turns of equal work on the GPU's own clock; give the fastest, per work."""
    _turn_s(work, 3)  # sets up what is set up once
    first_s = _turn_s(work, 3) / 3
    count = max(3, min(1000, round(_TURN_S / max(first_s, 1e-7))))
    return min(_turn_s(work, count) for _ in range(_TURNS)) / count


def _turn_s(work: Product, count: int) -> float:
    begin = torch.cuda.Event(enable_timing=True)
    end = torch.cuda.Event(enable_timing=True)
    begin.record()
    for _ in range(count):
        work()
    end.record()
    end.synchronize()
    return float(begin.elapsed_time(end)) / 1000


def _launch_ns() -> float:
    tiny = torch.zeros(1, device="cuda")
    turns = []
    for _ in range(_TURNS):
        torch.cuda.synchronize()
        begun_ns = time.perf_counter_ns()
        for _ in range(_LAUNCHES):
            tiny.add_(1)
        turns.append((time.perf_counter_ns() - begun_ns) / _LAUNCHES)
    torch.cuda.synchronize()
    return min(turns)


def _round_trip_ns() -> float:
    tiny = torch.zeros(1, device="cuda")
    turns = []
    for _ in range(_LAUNCHES // 4):
        begun_ns = time.perf_counter_ns()
        tiny.add_(1)
        torch.cuda.synchronize()
        turns.append(time.perf_counter_ns() - begun_ns)
    return float(statistics.median(turns))


if __name__ == "__main__":
    sys.stdout.buffer.write(msgspec.json.encode(main("--again" in sys.argv[1:])))
