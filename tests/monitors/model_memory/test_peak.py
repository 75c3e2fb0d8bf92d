"""The peak of a step against what PyTorch has alive, operator by operator.

Tensors are on the meta device: they have sizes and no memory. Each storage is counted
from when an operator makes it until it is freed, so the order in which autograd frees
activations is PyTorch's own. What only CUDA has (FlashAttention, the fused RMSNorm and
optimizers) is stood in for by functions that keep the same tensors.
"""

import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from tests import model_steps
from tests.model_steps import CASES, gpt2, made, without_dropout
from warpbook_monitors.model_memory.description import Model
from warpbook_monitors.model_memory.hugging_face import model_of_config
from warpbook_monitors.model_memory.plan import Plan
from warpbook_monitors.model_memory.stages import stage_memories

#: not those that choose experts: how many tokens each gets hangs on numbers, which
#: the meta device has not
ON_META = [
    name for name in CASES if "autocast" not in name and not name.startswith("Mixtral")
]


class Alive(TorchDispatchMode):
    """Counts the bytes of all storages that there are, and the most there were."""

    def __init__(self) -> None:
        super().__init__()
        self.now_bytes = 0
        self.peak_bytes = 0
        self._known: set[int] = set()

    def __torch_dispatch__(
        self, operator: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        result = operator(*args, **(kwargs or {}))
        for leaf in tree_leaves(result):
            if isinstance(leaf, torch.Tensor):
                self._count(leaf.untyped_storage())
        return result

    def _count(self, storage: torch.UntypedStorage) -> None:
        key, size = storage._cdata, storage.nbytes()
        if key in self._known:
            return

        def free() -> None:
            self._known.discard(key)
            self.now_bytes -= size

        self._known.add(key)
        self.now_bytes += size
        self.peak_bytes = max(self.peak_bytes, self.now_bytes)
        weakref.finalize(storage, free)


class Flash(torch.autograd.Function):
    """Keeps what FlashAttention keeps, in its layout."""

    @staticmethod
    def forward(ctx: Any, query: Any, key: Any, value: Any) -> torch.Tensor:
        output = torch.empty_like(query.transpose(1, 2).contiguous()).transpose(1, 2)
        rows = torch.empty(query.shape[:-1], dtype=torch.float32, device=query.device)
        ctx.save_for_backward(query, key, value, output, rows)
        return output

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> tuple[torch.Tensor, ...]:
        return tuple(torch.empty_like(tensor) for tensor in ctx.saved_tensors[:3])


class FusedNorm(torch.autograd.Function):
    """Keeps what the RMSNorm of CUDA keeps."""

    @staticmethod
    def forward(ctx: Any, x: Any, weight: Any) -> torch.Tensor:
        rows = torch.empty(x.shape[:-1], dtype=torch.float32, device=x.device)
        ctx.save_for_backward(x, weight, rows)
        return torch.empty_like(x)

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> tuple[torch.Tensor, ...]:
        return tuple(torch.empty_like(tensor) for tensor in ctx.saved_tensors[:2])


class FusedOptimizer(torch.optim.Optimizer):
    """Has states, and no temporaries."""

    def __init__(self, parameters: list, states: int) -> None:
        super().__init__(parameters, {})
        self._states = states

    def step(self, closure: Any = None) -> None:
        for parameter in self.param_groups[0]["params"]:
            if not self.state[parameter]:
                for number in range(self._states):
                    self.state[parameter][number] = torch.zeros_like(parameter).detach()


@pytest.fixture
def as_on_cuda(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Kernels of CUDA keep what they keep there."""
    made_by_torch = model_steps.optimizer

    def optimizer(plan: Plan, parameters: list) -> torch.optim.Optimizer:
        if plan.optimizer == "adam" and not plan.fused:
            return made_by_torch(plan, parameters)
        states = {"sgd": 0, "momentum": 1, "adam": 2}[plan.optimizer]
        return FusedOptimizer(parameters, states)

    def attend(query: Any, key: Any, value: Any, **options: Any) -> torch.Tensor:
        return Flash.apply(query, key, value)

    def normed(norm: nn.RMSNorm, x: torch.Tensor) -> torch.Tensor:
        return FusedNorm.apply(x, norm.weight)

    def dropped(drop: nn.Dropout, x: torch.Tensor) -> torch.Tensor:
        return torch.native_dropout(x, drop.p, True)[0] if drop.p else x

    monkeypatch.setattr(model_steps, "optimizer", optimizer)
    monkeypatch.setattr(F, "scaled_dot_product_attention", attend)
    monkeypatch.setattr(nn.RMSNorm, "forward", normed)
    monkeypatch.setattr(nn.Dropout, "forward", dropped)
    yield


def peaks(
    make: Callable[[], nn.Module], model: Model, plan: Plan, device: str
) -> tuple[int, int]:
    """Give the calculator's peak and PyTorch's, of the second step."""
    [stage] = stage_memories(model, plan)
    with Alive() as alive:
        stepping = made(make, model, plan, device)
        stepping.step()
        alive.peak_bytes = alive.now_bytes
        stepping.step()
    return stage.peak_bytes, alive.peak_bytes


@pytest.mark.usefixtures("as_on_cuda")
@pytest.mark.parametrize("name", ON_META)
def test_the_peak_is_that_of_autograd(name: str) -> None:
    computed, counted = peaks(*CASES[name], "meta")
    assert computed == pytest.approx(counted, rel=0.03)


def test_the_peak_under_autocast() -> None:
    config = {"model_type": "gpt2", "n_embd": 96, "n_layer": 3, "vocab_size": 2000}
    model = without_dropout(model_of_config(config))
    make = gpt2(layers=3, dropout=0.0, hidden=96, vocabulary=2000)
    plan = Plan(tokens=256, precision="autocast", optimizer="sgd")
    computed, counted = peaks(make, model, plan, "cpu")
    assert computed == pytest.approx(counted, rel=0.05)
