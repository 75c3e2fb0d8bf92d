"""Cells without a GPU, each with the verdicts that an expert would accept.

`python -m benchmarks.cpu_verdicts` profiles them; `tests/data/cpu` holds one recording
of each of the first eight.
"""

import math
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

Code = Callable[[], object]


class Cell(NamedTuple):
    """A cell: what sets it up and gives its code, and what holds that back."""

    make: Callable[[], Code]
    #: kinds that an expert would accept, and changes
    kinds: tuple[str, ...]
    changes: tuple[str, ...]
    threads: int = 2


class Slow(Dataset):
    """Computes each item in Python, as decoders of images and text do."""

    def __len__(self) -> int:
        return 48

    def __getitem__(self, index: int) -> torch.Tensor:
        value = sum(math.sin(step * index) for step in range(4000))
        return torch.full((64,), value)


def _loader(workers: int) -> Code:
    model = torch.nn.Linear(64, 64)

    def code() -> None:
        for batch in DataLoader(Slow(), batch_size=8, num_workers=workers):
            model(batch).sum().backward()

    return code


def slow_items() -> Code:
    return _loader(0)


def slow_items_of_workers() -> Code:
    return _loader(2)


def scalar_loop() -> Code:
    x = torch.randn(800)

    def code() -> float:
        total = 0.0
        for value in x:
            total += value.item() ** 2
        return total

    return code


def _products() -> Code:
    a = torch.randn(768, 768)

    def code() -> torch.Tensor:
        b = a
        for _ in range(8):
            b = a @ b
        return b

    return code


def matmul() -> Code:
    return _products()


def matmul_on_one_thread() -> Code:
    return _products()


def matmul_oversubscribed() -> Code:
    return _products()


def tiny_operators() -> Code:
    x = torch.randn(16)

    def code() -> torch.Tensor:
        y = x
        for _ in range(250):
            y = torch.relu(y * 1.01 + 0.1)
        return y

    return code


def elementwise_chain() -> Code:
    x = torch.randn(3_000_000)

    def code() -> torch.Tensor:
        y = x
        for _ in range(6):
            y = (y * 2.0 + 1.0).abs()
        return y

    return code


def pure_python() -> Code:
    def code() -> int:
        total = 0
        for number in range(300_000):
            total += number * number % 7
        return total

    return code


def numpy_conversions() -> Code:
    rows = [list(np.random.rand(2000)) for _ in range(40)]

    def code() -> torch.Tensor:
        doubled = [(torch.tensor(row) * 2).numpy().tolist() for row in rows]
        return torch.tensor(doubled)

    return code


def small_training() -> Code:
    model = torch.nn.Sequential(
        torch.nn.Linear(32, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1)
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    x, y = torch.randn(8, 32), torch.randn(8, 1)

    def code() -> None:
        for _ in range(60):
            loss = (model(x) - y).square().mean()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()

    return code


def convolutions() -> Code:
    model = torch.nn.Sequential(
        torch.nn.Conv2d(3, 32, 3), torch.nn.ReLU(), torch.nn.Conv2d(32, 64, 3)
    )
    images = torch.randn(8, 3, 96, 96)

    def code() -> torch.Tensor:
        return model(images).mean()

    return code


def waits_for_files() -> Code:
    def code() -> int:
        size = 0
        with tempfile.TemporaryDirectory() as folder:
            for number in range(8):
                path = Path(folder, str(number))
                path.write_bytes(b"0" * 1000)
                time.sleep(0.01)  # a disk far away
                size += len(path.read_bytes())
        return size

    return code


def running_sum() -> Code:
    x = torch.randn(4_000_000)

    def code() -> torch.Tensor:
        return x.cumsum(0).cumsum(0)

    return code


def rows_sorted() -> Code:
    x = torch.randn(300_000)

    def code() -> list[torch.Tensor]:
        return [x.sort().values for _ in range(3)]

    return code


CELLS = {
    "slow_items": Cell(slow_items, ("input-bound",), ("workers",)),
    "scalar_loop": Cell(scalar_loop, ("python-bound",), ("vectorize",)),
    "matmul": Cell(matmul, ("compute-bound",), ("smaller-products",)),
    "tiny_operators": Cell(tiny_operators, ("overhead-bound",), ("fewer-calls",)),
    "elementwise_chain": Cell(elementwise_chain, ("memory-bound",), ("fuse",)),
    "matmul_on_one_thread": Cell(
        matmul_on_one_thread, ("thread-bound",), ("threads",), threads=1
    ),
    "pure_python": Cell(pure_python, ("python-bound",), ("less-python",)),
    "numpy_conversions": Cell(numpy_conversions, ("python-bound",), ("convert-once",)),
    # what follows was written after the rules
    "slow_items_of_workers": Cell(
        slow_items_of_workers,
        ("input-bound",),
        ("more-workers", "keep-workers", "fewer-workers"),
    ),
    "matmul_oversubscribed": Cell(
        matmul_oversubscribed, ("thread-bound",), ("threads",), threads=8
    ),
    "small_training": Cell(small_training, ("overhead-bound",), ("fewer-calls",)),
    "convolutions": Cell(convolutions, ("compute-bound",), ("smaller-products",)),
    "waits_for_files": Cell(waits_for_files, ("wait-bound",), ("wait-less",)),
    "running_sum": Cell(running_sum, ("thread-bound",), ("divide",)),
    "rows_sorted": Cell(
        rows_sorted, ("thread-bound", "operator-bound"), ("divide", "other-operator")
    ),
}
