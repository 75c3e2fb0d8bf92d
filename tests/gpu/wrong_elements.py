"""Checks the checker on the GPU: one wrong element, at each place, must be found.

python tests/gpu/wrong_elements.py
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "labs"), str(ROOT / "monitors")]

from warpbook_labs.gpu.driver import Device  # noqa: E402
from warpbook_labs.gpu.kernels import poison  # noqa: E402
from warpbook_labs.gpu.tools import Tools  # noqa: E402

#: more than a block, and no multiple of one
COUNT = 300
BOUND = 0.25
KEY = 12345
DTYPES = ("float16", "float32", "float64", "int32", "int64", "uint32", "int8", "uint8")
ZONE_BYTES = 3000


def wrongs(dtype: str, right: np.ndarray, at: int, offset: int) -> dict[str, bytes]:
    """Give wrong values of an element."""
    kind = np.dtype(dtype)
    size = kind.itemsize
    begin = offset + at * size
    by_words = {"off by more": np.array(right[at] + 1, kind).tobytes()}
    if kind.kind == "f":
        by_words["NaN"] = np.array(np.nan, kind).tobytes()
        by_words["infinite"] = np.array(np.inf, kind).tobytes()
        by_words["a little more than may be"] = np.array(
            right[at] + kind.type(BOUND * 1.5), kind
        ).tobytes()
    if kind.kind == "f" or size >= 4:
        by_words["never written"] = poison(size, KEY, begin).tobytes()
    return by_words


def main() -> None:
    """Print a row for each type."""
    device = Device()
    tools = Tools(device)
    arena, want = device.allocate(1 << 16), device.allocate(1 << 16)
    offset, missed = 4096, []
    print("| what is compared | wrong elements, one at a time | missed |")
    print("|---|---|---|")
    for dtype in DTYPES:
        rng, tried, before = np.random.default_rng(1), 0, len(missed)
        right = rng.integers(1, 100, COUNT).astype(dtype)
        bound = BOUND if right.dtype.kind == "f" else 0.0
        device.upload(want, right)
        for at in range(COUNT):
            for what, held in wrongs(dtype, right, at, offset).items():
                device.upload(arena + offset, right)
                size = right.itemsize
                device.upload(arena + offset + at * size, np.frombuffer(held, np.uint8))
                tools.clear()
                tools.compare(arena, offset, want, COUNT, dtype, bound, KEY)
                outcome = tools.outcome()
                tried += 1
                if outcome != (at, 1):
                    missed.append(f"{dtype}[{at}] {what}: {outcome}")
        device.upload(arena + offset, right)
        tools.clear()
        tools.compare(arena, offset, want, COUNT, dtype, bound, KEY)
        if tools.outcome()[1]:
            missed.append(f"{dtype}: what is right is called wrong")
        print(f"| {dtype} | {tried:,} | {len(missed) - before} |")
    before = len(missed)
    for at in range(ZONE_BYTES):
        if at % 500 == 0:
            tools.poison(arena, 1 << 16, KEY)
            device.wait(5)
        was = device.download(arena + at, 1)
        device.upload(arena + at, was ^ 1)
        tools.clear()
        tools.untouched(arena, 0, ZONE_BYTES, KEY)
        outcome = tools.outcome()
        if outcome != (at, 1):
            missed.append(f"byte {at} of a red zone: {outcome}")
        device.upload(arena + at, was)
    print(f"| bytes of a red zone | {ZONE_BYTES:,} | {len(missed) - before} |")
    print("\n".join(missed[:20]))
    sys.exit(bool(missed))


if __name__ == "__main__":
    main()
