"""What only a GPU does, on the CPU: most of it is nothing.

CUDA graphs are as they are on a GPU: a capture computes nothing, and a replay runs the
operators of the capture, and no Python, on the memory that the capture had.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch.utils import _pytree as tree
from torch.utils._python_dispatch import TorchDispatchMode


class Graph(TorchDispatchMode):
    """Operators of a capture, in their order."""

    def __init__(self) -> None:
        super().__init__()
        self._calls: list[tuple[Any, Any, Any, Any]] = []
        #: what tensors held before the capture
        self._before: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}

    def __torch_dispatch__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        name = function.overloadpacket.__name__
        if name in ("_local_scalar_dense", "nonzero", "is_nonzero"):
            raise RuntimeError("operation not permitted when stream is capturing")
        kwargs = kwargs or {}
        for one in tree.tree_leaves((args, kwargs)):
            if isinstance(one, torch.Tensor):
                key = one.untyped_storage().data_ptr()
                whole = one.detach().as_strided(
                    (one.untyped_storage().nbytes() // one.element_size(),), (1,), 0
                )
                self._before.setdefault(key, (whole, whole.clone()))
        # `squeeze_` changes the shape of what it is given
        taken = tree.tree_map_only(torch.Tensor, torch.Tensor.detach, (args, kwargs))
        results = function(*args, **kwargs)
        given = tree.tree_map_only(torch.Tensor, torch.Tensor.detach, results)
        self._calls.append((function, *taken, given))
        return results

    def end(self) -> None:
        """Put back what the capture changed."""
        for whole, before in self._before.values():
            whole.copy_(before)

    def replay(self) -> None:
        """Run the operators again, with results where they were."""
        with torch.no_grad():
            for function, args, kwargs, results in self._calls:
                again = function(*args, **kwargs)
                for old, new in zip(
                    tree.tree_leaves(results), tree.tree_leaves(again), strict=True
                ):
                    if isinstance(old, torch.Tensor) and not function.is_view:
                        old.copy_(new)


class _Stream:
    def wait_stream(self, other: _Stream) -> None:
        pass


@contextlib.contextmanager
def capture(graph: Graph) -> Iterator[None]:
    """Capture what the block does."""
    with graph:
        yield
    graph.end()


def replace_gpu(patch: pytest.MonkeyPatch) -> None:
    """Have torch do without a GPU; what is compiled is only seen on one."""
    for name in ("synchronize", "empty_cache"):
        patch.setattr(torch.cuda, name, lambda *_: None)
    for name in ("cuda", "pin_memory"):
        patch.setattr(torch.Tensor, name, lambda tensor, *_, **__: tensor)
    for name in ("empty", "empty_like", "zeros"):
        patch.setattr(torch, name, _unpinned(getattr(torch, name)))
    patch.setattr(torch, "compile", lambda one=None, **_: one or (lambda made: made))
    replace_graphs(patch)


def _unpinned(make: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    def made(*shape: Any, pin_memory: bool = False, **more: Any) -> torch.Tensor:
        return make(*shape, **more)

    return made


def replace_graphs(patch: pytest.MonkeyPatch) -> None:
    """Have torch capture and replay on the CPU."""
    patch.setattr(torch.cuda, "CUDAGraph", Graph)
    patch.setattr(torch.cuda, "graph", capture)
    patch.setattr(torch.cuda, "Stream", _Stream)
    patch.setattr(torch.cuda, "current_stream", _Stream)
    patch.setattr(torch.cuda, "stream", lambda _: contextlib.nullcontext())
    # these are hidden by functions of the same names
    for kind in ("adam", "rmsprop"):
        module = sys.modules[f"torch.optim.{kind}"]
        patch.setattr(module, "_get_capturable_supported_devices", lambda **_: ["cpu"])
