"""Settings of the whole process are put back, the older and the newer ones of torch."""

from __future__ import annotations

import os
import random
import warnings
from collections.abc import Callable, Iterator

import numpy as np
import pytest
import torch

from tests.extension.kernel.state_digest import digest
from warpbook.kernel.trying.saved_globals import SavedGlobals


def tf32() -> None:
    torch.set_float32_matmul_precision("high")
    torch.backends.cudnn.allow_tf32 = True


def no_tf32() -> None:
    torch.set_float32_matmul_precision("highest")
    torch.backends.cudnn.allow_tf32 = False


def newer_tf32() -> None:
    torch.backends.cuda.matmul.fp32_precision = "tf32"


def others() -> None:
    torch.backends.cudnn.benchmark = not torch.backends.cudnn.benchmark
    torch.set_autocast_enabled("cpu", True)
    torch.set_autocast_dtype("cpu", torch.float16)
    torch.set_grad_enabled(False)
    torch.set_default_dtype(torch.float64)
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.autograd.set_detect_anomaly(True)
    torch.backends.cuda.enable_math_sdp(False)
    os.environ["WARPBOOK_TRIED"] = "1"
    warnings.simplefilter("ignore")
    torch.rand(1), np.random.rand(), random.random()
    os.chdir("/")


CHANGES: list[Callable[[], None]] = [tf32, no_tf32, newer_tf32, others]


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    """Whatever fails here, other tests have torch as it was."""
    saved = SavedGlobals()
    yield
    saved.restore()


@pytest.mark.parametrize("before", [lambda: None, tf32, no_tf32])
@pytest.mark.parametrize("change", CHANGES)
def test_what_a_run_sets_is_put_back(
    before: Callable[[], None], change: Callable[[], None]
) -> None:
    before()
    then, saved = digest({}), SavedGlobals()
    change()
    assert change is not others or saved.differences()
    saved.restore()
    assert saved.differences() == []
    assert digest({}) == then
