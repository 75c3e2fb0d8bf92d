"""What a person has, as digests: tensors, optimizers, random states, settings, names.

It is written apart from what it tests: it walks the namespace by itself.
"""

from __future__ import annotations

import hashlib
import os
import random
from typing import Any

import numpy as np
import torch


def digest(namespace: dict[str, Any]) -> dict[str, Any]:
    """Give one entry for each thing that must not change."""
    digests: dict[str, Any] = {
        "names": [(name, id(value)) for name, value in namespace.items()],
        "torch": _hash(torch.get_rng_state().numpy().tobytes()),
        "numpy": repr(np.random.get_state()),
        "python": _hash(repr(random.getstate()).encode()),
        "precision": torch.get_float32_matmul_precision(),
        "newer precisions": _newer_precisions(),
        "cudnn": _flags(torch.backends.cudnn),
        "autocast": [
            (
                device,
                torch.is_autocast_enabled(device),
                torch.get_autocast_dtype(device),
            )
            for device in ("cpu", "cuda")
        ],
        "grad": torch.is_grad_enabled(),
        "dtype": torch.get_default_dtype(),
        "environment": dict(os.environ),
        "folder": os.getcwd(),
    }
    for name, value in namespace.items():
        _add(digests, name, value, set())
    return digests


def _newer_precisions() -> list[Any]:
    backends = torch.backends
    owners = (backends, backends.cuda.matmul, backends.cudnn, backends.cudnn.conv)
    return [getattr(owner, "fp32_precision", None) for owner in owners]


def _flags(cudnn: Any) -> tuple[bool, ...]:
    return cudnn.enabled, cudnn.benchmark, cudnn.deterministic, cudnn.allow_tf32


def _add(digests: dict[str, Any], path: str, value: Any, seen: set[int]) -> None:
    if id(value) in seen:
        return
    seen.add(id(value))
    if isinstance(value, torch.Tensor):
        elements = value.detach().cpu().contiguous().view(-1).view(torch.uint8)
        digests[path] = (
            id(value),
            _hash(elements.numpy().tobytes()),
            (value.shape, value.stride(), value.storage_offset(), value.dtype),
            value.data_ptr(),
            value.is_pinned(),
            value.requires_grad,
            None if value.is_inference() else value._version,
            id(value.grad) if value.is_leaf else None,
        )
        if value.is_leaf and value.grad is not None:
            _add(digests, f"{path}.grad", value.grad, seen)
    elif isinstance(value, np.ndarray):
        digests[path] = (id(value), _hash(value.tobytes()), value.shape)
    elif isinstance(value, torch.nn.Module):
        for name, module in value.named_modules():
            digests[f"{path}.{name} itself"] = (
                *(id(module), module.training, sorted(vars(module))),
                *(len(module._forward_hooks), len(module._forward_pre_hooks)),
            )
        for name, part in (*value.named_parameters(), *value.named_buffers()):
            _add(digests, f"{path}.{name}", part, seen)
    elif isinstance(value, torch.optim.Optimizer):
        digests[f"{path} itself"] = sorted(vars(value))
        for at, group in enumerate(value.param_groups):
            plain = {key: item for key, item in group.items() if key != "params"}
            digests[f"{path} group {at}"] = plain
        for at, kept in enumerate(value.state.values()):
            _add(digests, f"{path} state {at}", kept, seen)
    elif isinstance(value, torch.Generator):
        digests[path] = _hash(value.get_state().numpy().tobytes())
    elif isinstance(value, np.random.Generator):
        digests[path] = repr(value.bit_generator.state)
    elif isinstance(value, random.Random):
        digests[path] = _hash(repr(value.getstate()).encode())
    elif isinstance(value, dict) and not path.startswith("_"):
        digests[path] = [(key if isinstance(key, str) else id(key)) for key in value]
        for key, item in value.items():
            _add(
                digests,
                f"{path}[{key if isinstance(key, str) else id(key)}]",
                item,
                seen,
            )
    elif isinstance(value, (list, tuple)) and not path.startswith("_"):
        digests[path] = [id(item) for item in value]
        for at, item in enumerate(value):
            _add(digests, f"{path}[{at}]", item, seen)
    elif type(value).__module__ == "__main__":
        for name, item in vars(value).items():
            digests[f"{path}.{name} itself"] = id(item)
            _add(digests, f"{path}.{name}", item, seen)


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
