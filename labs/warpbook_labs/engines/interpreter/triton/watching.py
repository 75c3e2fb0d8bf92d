"""What a Triton kernel does in Triton's interpreter, looked at while it does it."""

from __future__ import annotations

import contextlib
import importlib
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpbook_labs.engines.interpreter.triton.memory import (
    Addresses,
    Mask,
    TritonMemory,
)
from warpbook_labs.results.findings import Counts, Report

#: the learner's file in messages; absolute, so that nobody asks where this process is
FILE = "/kernel.py"


@contextlib.contextmanager
def products_counted(builder: Any, report: Report) -> Iterator[None]:
    """Count what is multiplied: by `tl.dot` where tensor cores would, and by lines."""
    ieee = importlib.import_module("triton._C.libtriton").ir.INPUT_PRECISION.IEEE
    plain_dot, plain_product = builder.create_dot, builder.create_fmul

    def note(products: int) -> None:
        line = _line_now() or 0
        report.products[line] = report.products.get(line, 0) + products

    def create_dot(a: Any, b: Any, total: Any, precision: Any, *more: Any) -> Any:
        products = a.data.size * b.data.shape[-1]
        # no tensor core multiplies FP32 without rounding it
        if a.data.dtype != np.float32 or precision != ieee:
            report.counts.add(Counts(dot_multiplications=products))
        else:
            note(products)
        return plain_dot(a, b, total, precision, *more)

    def create_fmul(a: Any, b: Any) -> Any:
        note(a.data.size)
        return plain_product(a, b)

    # on the instance only: `del` brings the class's own back
    builder.create_dot, builder.create_fmul = create_dot, create_fmul
    try:
        yield
    finally:
        del builder.create_dot, builder.create_fmul


def _line_now() -> int | None:
    """Give the line of the source that is done now."""
    frame: types.FrameType | None = sys._getframe(2)
    while frame is not None and frame.f_code.co_filename != FILE:
        frame = frame.f_back
    return None if frame is None else frame.f_lineno


class Watched:
    """The compiled part of the interpreter, with each access looked at before."""

    def __init__(self, plain: Any, builder: Any, memory: TritonMemory) -> None:
        self._plain, self._builder, self._memory = plain, builder, memory
        self._is_gpu_wide = True

    def __getattr__(self, name: str) -> Any:
        """Give what is not looked at."""
        return getattr(self._plain, name)

    def load(self, at: Addresses, mask: Mask, other: NDArray[Any], dtype: Any) -> Any:
        self._say_where()
        inside = self._memory.read(at, mask, np.dtype(dtype).itemsize)
        return self._plain.load(at, inside, other, dtype)

    def store(self, at: Addresses, values: NDArray[Any], mask: Mask) -> Any:
        self._say_where()
        inside = self._memory.write(at, values, mask)
        return self._plain.store(at, values, inside)

    def atomic_rmw(
        self, kind: Any, at: Addresses, values: NDArray[Any], mask: Mask, order: Any
    ) -> Any:
        """Do what may be done; it may give a lock back."""
        self._say_where()
        inside = self._memory.update(at, mask, values.dtype.itemsize)
        before = self._plain.atomic_rmw(kind, at, values, inside, order)
        is_set = str(kind).endswith("XCHG")
        does_release = is_set and self._orders(order, "RELEASE")
        self._memory.change_locks(at[inside], values[inside], does_release)
        does_order = self._orders(order, "ACQUIRE") and self._orders(order, "RELEASE")
        if str(kind).endswith(".ADD") and at.size == 1 and inside.all() and does_order:
            self._memory.count(at.item())
        return before

    def atomic_cas(
        self, at: Addresses, before: NDArray[Any], values: NDArray[Any], order: Any
    ) -> Any:
        """Swap what may be swapped; it may take a lock."""
        self._say_where()
        whole = np.ones(at.shape, np.bool_)
        inside = self._memory.update(at, whole, values.dtype.itemsize)
        if not inside.all():
            # it has no mask that could leave the others out
            return np.zeros_like(values)
        old = self._plain.atomic_cas(at, before, values, order)
        is_taken = at.size == 1 and old.item() == before.item() != values.item()
        if is_taken and self._orders(order, "ACQUIRE"):
            self._memory.take_lock(at.item(), before.item())
        return old

    def _orders(self, order: Any, how: str) -> bool:
        """Tell whether an atomic orders what is around it, for all of the GPU."""
        return self._is_gpu_wide and how in str(order)

    @contextlib.contextmanager
    def with_scopes(self) -> Iterator[None]:
        """Note barriers and the scopes of atomics, which are not handed on."""
        builder = self._builder
        plain = {
            name: getattr(builder, name)
            for name in ("create_atomic_cas", "create_atomic_rmw")
        }

        def create_barrier() -> None:
            self._memory.meet_barrier()

        def scoped(name: str) -> Callable[..., Any]:
            def create(*given: Any) -> Any:
                self._is_gpu_wide = "CTA" not in str(given[-1])
                return plain[name](*given)

            return create

        builder.create_barrier = create_barrier
        for name in plain:
            setattr(builder, name, scoped(name))
        try:
            yield
        finally:
            for name in ("create_barrier", *plain):
                delattr(builder, name)

    def _say_where(self) -> None:
        self._memory.at(self._builder.grid_idx, _line_now())
