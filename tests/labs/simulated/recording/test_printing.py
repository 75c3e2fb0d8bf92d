"""What `print(x)` shows is what PyTorch shows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from tests.labs.simulated.recording.pair import simulated

CHANCE = np.random.default_rng(0)

SHOWN: dict[str, NDArray[Any]] = {
    "one number": np.array(2.5, np.float32),
    "a whole one": np.array(3.0, np.float32),
    "zeros": np.zeros(5, np.float32),
    "nothing": np.empty(0, np.float32),
    "nothing, of whole numbers": np.empty((2, 0), np.int64),
    "a row": CHANCE.standard_normal(9).astype(np.float32),
    "a long row": CHANCE.standard_normal(40).astype(np.float32),
    "a matrix": CHANCE.standard_normal((3, 4)).astype(np.float32),
    "a cube": CHANCE.standard_normal((2, 3, 4)).astype(np.float32),
    "half": CHANCE.standard_normal((2, 30)).astype(np.float16),
    "double": CHANCE.standard_normal((1, 7)),
    "far apart": np.array([1e-6, 1.0, 2e5, -3.0], np.float32),
    "tiny": np.array([1e-6, 2e-6], np.float32),
    "large and whole": np.array([1.0, 5e6, -2.0], np.float32),
    "whole": np.array([[1.0, -2.0], [30.0, 4.0]], np.float32),
    "not finite": np.array([np.nan, np.inf, -np.inf, 1.5], np.float32),
    "not finite, whole": np.array([np.nan, np.inf, 2.0], np.float32),
    "int64": np.arange(-3, 30),
    "int32": np.arange(6, dtype=np.int32).reshape(2, 3),
    "bool": np.array([True, False]),
    "a thousand": np.arange(1000, dtype=np.float32),
    "more": np.arange(1001, dtype=np.float32),
    "a large matrix": CHANCE.standard_normal((40, 50)).astype(np.float32),
    "a large cube": CHANCE.standard_normal((5, 20, 30)).astype(np.float32),
    "a wide one": CHANCE.standard_normal((2, 600)).astype(np.float16),
}


@pytest.mark.parametrize("name", SHOWN)
def test_it_is_printed_as_pytorch_prints_it(name: str) -> None:
    array = SHOWN[name]
    ours = simulated().tensor(array)
    assert repr(ours) == repr(torch.tensor(array))
    assert f"{ours}" == f"{torch.tensor(array)}"


def test_a_tensor_of_the_gpu_says_so_and_a_number_takes_a_format() -> None:
    t = simulated()
    assert repr(t.ones(2, device="cuda")) == "tensor([1., 1.], device='cuda:0')"
    assert f"{t.ones(3, device='cuda').mean():.2f}" == "1.00"
