"""What belongs to the whole process: settings of torch, random states, environment."""

from __future__ import annotations

import os
import random
import warnings
from collections.abc import Iterator
from functools import partial, reduce
from typing import Any

import numpy as np
import torch

from warpbook.kernel.trying.kept import Kept, keep_container, keep_random_state
from warpbook_profiler.capture.torch_gpus import used_devices

#: of `torch.backends`; the newer ones, at the end, say more than the older
_BACKENDS = (
    "cuda.matmul.allow_tf32",
    "cuda.matmul.allow_fp16_reduced_precision_reduction",
    "cuda.matmul.allow_bf16_reduced_precision_reduction",
    *(f"cudnn.{name}" for name in ("enabled", "benchmark", "deterministic")),
    "cudnn.allow_tf32",
    "cuda.matmul.fp32_precision",
    *("cudnn.fp32_precision", "cudnn.conv.fp32_precision", "cudnn.rnn.fp32_precision"),
    *(f"mkldnn.{name}.fp32_precision" for name in ("matmul", "conv", "rnn")),
    "mkldnn.fp32_precision",
)


def global_settings() -> Iterator[Kept]:
    """Keep all of them; some are not there in each version of torch."""
    backends = torch.backends
    yield Kept(
        "float32 matmul precision",
        torch.get_float32_matmul_precision,
        torch.set_float32_matmul_precision,
    )
    yield from _attribute(backends, "fp32_precision")
    for path in _BACKENDS:
        *owners, name = path.split(".")
        owner = reduce(lambda at, part: getattr(at, part, None), owners, backends)
        yield from _attribute(owner, name, path)
    for name in ("flash", "mem_efficient", "math", "cudnn"):
        read = getattr(backends.cuda, f"{name}_sdp_enabled", None)
        write = getattr(backends.cuda, f"enable_{name}_sdp", None)
        if read is not None and write is not None:
            yield Kept(f"{name} attention", read, write)
    for device in ("cpu", "cuda"):
        yield Kept(
            f"autocast on {device}",
            partial(torch.is_autocast_enabled, device),
            partial(torch.set_autocast_enabled, device),
        )
        yield Kept(
            f"autocast dtype on {device}",
            partial(torch.get_autocast_dtype, device),
            partial(torch.set_autocast_dtype, device),
        )
    yield Kept(
        "autocast cache",
        torch.is_autocast_cache_enabled,
        torch.set_autocast_cache_enabled,
    )
    yield Kept("grad mode", torch.is_grad_enabled, torch.set_grad_enabled)
    yield Kept("default dtype", torch.get_default_dtype, torch.set_default_dtype)
    yield Kept("threads", torch.get_num_threads, torch.set_num_threads)
    yield Kept(
        "deterministic algorithms",
        lambda: (
            torch.are_deterministic_algorithms_enabled(),
            torch.is_deterministic_algorithms_warn_only_enabled(),
        ),
        lambda both: torch.use_deterministic_algorithms(both[0], warn_only=both[1]),
    )
    yield Kept(
        "anomaly mode",
        lambda: (torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled()),
        lambda both: torch.autograd.set_detect_anomaly(*both),
    )
    if torch.cuda.is_initialized():
        for gpu in used_devices():
            read = partial(torch.cuda.current_stream, gpu)
            yield Kept(f"current stream of GPU {gpu}", read, torch.cuda.set_stream)
            generator = torch.cuda.default_generators[gpu]
            yield keep_random_state(f"random state of GPU {gpu}", generator)
        # to set a stream sets its GPU, too
        yield Kept("current GPU", torch.cuda.current_device, torch.cuda.set_device)
    yield Kept("environment", lambda: dict(os.environ), _set_environment)
    yield Kept("working directory", os.getcwd, os.chdir)
    yield keep_container("warnings", warnings.filters)
    yield keep_random_state("torch's random state", torch.default_generator)
    yield keep_random_state("NumPy's random state", np.random)
    yield Kept("Python's random state", random.getstate, random.setstate)


def _attribute(owner: Any, name: str, path: str = "") -> Iterator[Kept]:
    try:
        yield Kept(
            path or name, partial(getattr, owner, name), partial(setattr, owner, name)
        )
    except (AttributeError, RuntimeError):
        # it is not there, or contradicts another one
        return


def _set_environment(then: dict[str, str]) -> None:
    for name in os.environ.keys() - then.keys():
        del os.environ[name]
    os.environ.update(then)
