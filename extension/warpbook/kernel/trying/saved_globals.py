"""What belongs to the whole process: settings of torch, random states, environment."""

from __future__ import annotations

import gc
import os
import random
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from warpbook_profiler.capture.torch_gpus import used_devices


@dataclass(frozen=True)
class _Setting:
    """One setting: how it is read, and how it is set."""

    name: str
    read: Callable[[], Any]
    write: Callable[[Any], object]


def _attribute(name: str, owner: Any, attribute: str) -> _Setting:
    return _Setting(
        f"{name}.{attribute}",
        lambda: getattr(owner, attribute),
        lambda value: setattr(owner, attribute, value),
    )


def _settings() -> Iterator[_Setting]:
    """List them; some are not there in each version of torch."""
    backends = torch.backends
    yield _Setting(
        "float32 matmul precision",
        torch.get_float32_matmul_precision,
        torch.set_float32_matmul_precision,
    )
    for owner, path, attributes in (
        (backends.cuda.matmul, "cuda.matmul", _OF_MATMUL),
        (backends.cudnn, "cudnn", _OF_CUDNN),
        # where torch has them, they say more than the older ones above
        (backends, "backends", ("fp32_precision",)),
        (backends.cuda.matmul, "cuda.matmul", ("fp32_precision",)),
        (backends.cudnn, "cudnn", ("fp32_precision",)),
        *(
            (getattr(getattr(backends, backend, None), part, None), path, _PRECISION)
            for backend, part, path in _PARTS
        ),
        (getattr(backends, "mkldnn", None), "mkldnn", _PRECISION),
    ):
        for attribute in attributes:
            if owner is not None and hasattr_quietly(owner, attribute):
                yield _attribute(path, owner, attribute)
    for name in ("flash", "mem_efficient", "math", "cudnn"):
        read = getattr(backends.cuda, f"{name}_sdp_enabled", None)
        write = getattr(backends.cuda, f"enable_{name}_sdp", None)
        if read is not None and write is not None:
            yield _Setting(f"{name} attention", read, write)
    for device in ("cpu", "cuda"):
        yield from _autocast(device)
    yield _Setting(
        "autocast cache",
        torch.is_autocast_cache_enabled,
        torch.set_autocast_cache_enabled,
    )
    yield _Setting("grad mode", torch.is_grad_enabled, torch.set_grad_enabled)
    yield _Setting("default dtype", torch.get_default_dtype, torch.set_default_dtype)
    yield _Setting("threads", torch.get_num_threads, torch.set_num_threads)
    yield _Setting(
        "deterministic algorithms",
        lambda: (
            torch.are_deterministic_algorithms_enabled(),
            torch.is_deterministic_algorithms_warn_only_enabled(),
        ),
        lambda both: torch.use_deterministic_algorithms(both[0], warn_only=both[1]),
    )
    yield _Setting(
        "anomaly mode",
        lambda: (torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled()),
        lambda both: torch.autograd.set_detect_anomaly(*both),
    )
    if torch.cuda.is_initialized():
        yield from map(_gpu_stream, used_devices())
        # to set a stream sets its GPU, too
        yield _Setting("current GPU", torch.cuda.current_device, torch.cuda.set_device)
    yield _Setting(
        "garbage collector",
        gc.isenabled,
        lambda is_on: gc.enable() if is_on else gc.disable(),
    )
    yield _Setting("environment", lambda: dict(os.environ), _set_environment)
    yield _Setting("working directory", os.getcwd, os.chdir)
    yield _Setting("warnings", lambda: list(warnings.filters), _set_warnings)


_OF_MATMUL = (
    *("allow_tf32", "allow_fp16_reduced_precision_reduction"),
    "allow_bf16_reduced_precision_reduction",
)
_OF_CUDNN = ("enabled", "benchmark", "deterministic", "allow_tf32")
_PRECISION = ("fp32_precision",)
_PARTS = (
    ("cudnn", "conv", "cudnn.conv"),
    ("cudnn", "rnn", "cudnn.rnn"),
    ("mkldnn", "matmul", "mkldnn.matmul"),
    ("mkldnn", "conv", "mkldnn.conv"),
    ("mkldnn", "rnn", "mkldnn.rnn"),
)


def hasattr_quietly(owner: Any, name: str) -> bool:
    """Tell whether it can be read: settings that contradict each other raise."""
    try:
        getattr(owner, name)
    except (AttributeError, RuntimeError):
        return False
    return True


def _autocast(device: str) -> Iterator[_Setting]:
    yield _Setting(
        f"autocast on {device}",
        lambda: torch.is_autocast_enabled(device),
        lambda value: torch.set_autocast_enabled(device, value),
    )
    yield _Setting(
        f"autocast dtype on {device}",
        lambda: torch.get_autocast_dtype(device),
        lambda value: torch.set_autocast_dtype(device, value),
    )


def _set_environment(then: dict[str, str]) -> None:
    for name in os.environ.keys() - then.keys():
        del os.environ[name]
    os.environ.update(then)


def _set_warnings(then: list[Any]) -> None:
    warnings.filters[:] = then  # type: ignore[index]


def _random_states() -> Iterator[_Setting]:
    yield _Setting("torch's random state", torch.get_rng_state, torch.set_rng_state)
    yield from map(_gpu_random_state, used_devices())
    yield _Setting(
        "NumPy's random state",
        lambda: np.random.get_state(legacy=False),
        np.random.set_state,
    )
    yield _Setting("Python's random state", random.getstate, random.setstate)


def _gpu_stream(device: int) -> _Setting:
    return _Setting(
        f"current stream of GPU {device}",
        lambda: torch.cuda.current_stream(device),
        torch.cuda.set_stream,
    )


def _gpu_random_state(device: int) -> _Setting:
    return _Setting(
        f"random state of GPU {device}",
        lambda: torch.cuda.get_rng_state(device),
        lambda state: torch.cuda.set_rng_state(state, device),
    )


class SavedGlobals:
    """All of them as they were."""

    def __init__(self) -> None:
        settings = (*_settings(), *_random_states())
        self._then = [(setting, setting.read()) for setting in settings]

    def restore(self) -> None:
        """Set what is no longer as it was."""
        # an older setting sets newer ones, so those are looked at again
        for _ in range(2):
            for setting, then in self._then:
                if not _is_same(setting, then):
                    setting.write(then)

    def changed(self) -> dict[str, str]:
        """Give what those that are not as they were are now, as text."""
        changed = (one for one, then in self._then if not _is_same(one, then))
        return {setting.name: _text(setting.read()) for setting in changed}

    def differences(self) -> list[str]:
        """Name those that are not as they were; none after `restore`."""
        return [
            setting.name for setting, then in self._then if not _is_same(setting, then)
        ]


def _is_same(setting: _Setting, then: Any) -> bool:
    try:
        now = setting.read()
    except RuntimeError:
        # two that contradict each other for the moment
        return False
    if isinstance(then, torch.Tensor):
        return bool(torch.equal(now, then))
    if isinstance(then, dict) and "state" in then:
        return _text(now) == _text(then)
    return bool(now == then)


def _text(value: Any) -> str:
    value = value.tolist() if isinstance(value, torch.Tensor) else value
    with np.printoptions(threshold=100_000):
        return repr(value)
