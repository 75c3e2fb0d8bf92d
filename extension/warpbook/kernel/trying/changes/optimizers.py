"""An optimizer that updates all tensors in a few kernels."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Iterator
from typing import Any, ClassVar, Literal

import torch
from torch.optim.optimizer import register_optimizer_step_pre_hook

from warpbook.kernel.trying.changes.change import Applied, TriedCell

_Way = Literal["fused", "foreach"]
#: a count of steps, and the one on the parameter's device that stands for it
_Moved = tuple[torch.Tensor, torch.Tensor]


class FusedOptimizer:
    """`fused=True`, or `foreach=True` for those that know no other."""

    name: ClassVar[str] = "fused-optimizer"
    advice: ClassVar[str] = (
        "Make the optimizer with fused=True (foreach=True where it has no other)."
    )
    warm_ups: ClassVar[int] = 2

    def why_not(self, cell: TriedCell) -> str | None:
        """Say why it does not fit this cell."""
        optimizers = cell.facts.optimizers
        if not optimizers:
            return "no optimizer of torch made a step."
        if all(_better_way(optimizer) is None for optimizer in optimizers):
            return "its optimizers update all tensors at once already, or never can."
        return None

    @contextlib.contextmanager
    def applied(self, cell: TriedCell) -> Iterator[Applied]:
        """Turn it on; what an optimizer holds is put back after each run."""
        counts: list[_Moved] = []
        for optimizer in cell.facts.optimizers:
            if cell.is_kept(optimizer):
                counts += _turn_on(optimizer)

        def publish() -> None:
            for before, moved in counts:
                before.copy_(moved)

        if all(map(cell.is_kept, cell.facts.optimizers)):
            yield Applied(cell.run, publish)
            return

        # those that the cell makes are turned on at their first step
        def before_step(optimizer: torch.optim.Optimizer, *_: Any) -> None:
            _turn_on(optimizer)

        hook = register_optimizer_step_pre_hook(before_step)
        try:
            yield Applied(cell.run, publish)
        finally:
            hook.remove()


def _better_way(optimizer: torch.optim.Optimizer) -> _Way | None:
    """Give what it could do instead of what it does."""
    known = inspect.signature(type(optimizer)).parameters
    groups = optimizer.param_groups
    parameters = [parameter for group in groups for parameter in group["params"]]
    is_plain = all(
        parameter.is_floating_point()
        and not parameter.is_complex()
        and not parameter.is_sparse
        for parameter in parameters
    )
    if any(group.get("differentiable") for group in groups) or not is_plain:
        return None
    if "fused" in known:
        is_on = all(group.get("fused") for group in groups)
        devices = {parameter.device.type for parameter in parameters}
        # what is not listed by every version of torch is not tried
        return None if is_on or not devices <= {"cuda", "cpu"} else "fused"
    if "foreach" in known:
        is_on = all(_is_foreach(group) for group in groups)
        return None if is_on else "foreach"
    return None


def _is_foreach(group: dict[str, Any]) -> bool:
    foreach = group.get("foreach")
    # unless told otherwise, torch does so on a GPU only
    on_gpu = all(parameter.is_cuda for parameter in group["params"])
    return on_gpu if foreach is None else bool(foreach)


def _turn_on(optimizer: torch.optim.Optimizer) -> list[_Moved]:
    """Have it update all at once; give the counts of steps that had to move."""
    way = _better_way(optimizer)
    if way is None:
        return []
    for group in optimizer.param_groups:
        group["fused"] = way == "fused"
        group["foreach"] = way == "foreach"
    if way != "fused":
        return []
    # as its constructor does
    optimizer.__dict__["_step_supports_amp_scaling"] = True
    if hasattr(optimizer, "_need_device_dtype_check_for_fused"):
        optimizer.__dict__["_need_device_dtype_check_for_fused"] = True
    moved = []
    for parameter, kept in optimizer.state.items():
        step = kept.get("step")
        # a fused step counts on the device
        if isinstance(step, torch.Tensor) and step.device != parameter.device:
            kept["step"] = step.to(parameter.device)
            moved.append((step, kept["step"]))
    return moved
