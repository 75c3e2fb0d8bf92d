"""Has Triton's interpreter compute as a GPU does, where it would not.

It keeps bfloat16 as bits in integers, and its operators compute with these as if they
were numbers: here they are FP32 while something is computed, and rounded again. What a
mask leaves out of a load, and `other` does not give, is anything on a GPU: here it is
infinite.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpbook_labs.engines.interpreter.triton.assembly import mend_assembly

#: a tensor core reads of FP32 what TF32 has: 10 binary places
_OF_TF32 = np.uint32(0xFFFFE000)
_SIGNS_AND_EXPONENTS, _QUIET = np.uint32(0xFF800000), np.uint32(0x00400000)
#: operators take numbers, these many at first, and give one of the same type
_OPERATORS = {"binary_op": 2, "ternary_op": 3, "unary_op": 1, "create_fma": 3}

Numbers = NDArray[Any]


def mend(interpreter: Any) -> None:
    """Mend Triton's interpreter, of any version, for as long as this process lives."""
    builder = interpreter.InterpreterBuilder
    _mend_older(builder, interpreter)
    _patch_once(interpreter)
    language = importlib.import_module("triton.language")
    handle = interpreter.TensorHandle
    for name, count in _OPERATORS.items():
        if hasattr(builder, name):
            plain = getattr(builder, name)
            setattr(builder, name, _of_bfloat16(plain, count, handle, language))
    _mend_casts(builder, handle, language)
    _mend_reductions(interpreter.ReduceScanOpInterface, language)
    _mend_own_reductions(interpreter)
    _mend_dots(builder, handle, language)
    _mend_memory(builder, interpreter, language)
    mend_assembly(builder, handle)


def mend_library(standard: Any, is_interpreted: bool) -> None:
    """Have Triton's own functions do what is documented, in older versions, too.

    `tl.flip` turns the last dimension round unless told which one. Triton before 3.7
    compares that with None, and neither compiles nor interprets.
    """
    flip = getattr(standard, "flip", None)
    if flip is None or flip.fn.__defaults__ != (None,):
        return
    for function in (flip.fn, *((flip.rewrite(),) if is_interpreted else ())):
        function.__defaults__ = (-1,)
    if hasattr(flip, "signature"):
        flip.signature = inspect.signature(flip.fn)


def widened(bits: Numbers) -> Numbers:
    """Give the numbers that bits of bfloat16 stand for, in FP32."""
    return (bits.astype(np.uint32) << 16).view(np.float32)


def narrowed(numbers: Numbers) -> Numbers:
    """Give the bits of the nearest numbers in bfloat16, halves to even."""
    bits = np.atleast_1d(np.asarray(numbers, np.float32)).view(np.uint32)
    nearest = bits + 0x7FFF + (bits >> 16 & 1)
    nan = bits & _SIGNS_AND_EXPONENTS | _QUIET
    kept = np.where(np.isnan(bits.view(np.float32)), nan, nearest)
    return (kept >> 16).astype(np.uint16)


def _mend_older(builder: Any, interpreter: Any) -> None:
    """Have older versions compare as a GPU does, and count with any NumPy."""

    def fmax(self: Any, left: Any, right: Any) -> Any:
        return self.binary_op(left, right, np.fmax)

    def fmin(self: Any, left: Any, right: Any) -> Any:
        return self.binary_op(left, right, np.fmin)

    builder.create_maxnumf, builder.create_minnumf = fmax, fmin
    patch = interpreter._patch_lang_tensor

    def patch_and_mend(tensor: Any, scope: Any) -> None:
        patch(tensor, scope)
        scope.set_attr(tensor, "__index__", _as_integer)

    # it is patched anew at each launch, so what is set on a tensor would not last
    interpreter._patch_lang_tensor = patch_and_mend


def _patch_once(interpreter: Any) -> None:
    """Have calls of functions within a kernel leave the language as its launch has it.

    Triton patches it anew at each call, which takes longer than what is called.
    """
    core = importlib.import_module("triton.language.core")
    language = importlib.import_module("triton.language")
    plain = interpreter._patch_lang

    def patch(function: Any) -> Any:
        given = function.__globals__.values()
        seen = [each for each in (language, core) if any(one is each for one in given)]
        if seen and not any(core.is_builtin(each.load) for each in seen):
            return interpreter._LangPatchScope()
        return plain(function)

    interpreter._patch_lang = patch


def _as_integer(tensor: Any) -> int:
    """Give a scalar as Python's `range` and `int` ask for it.

    The interpreter holds it as an array of one element, with one dimension. Triton
    3.6 has `int` of that array, which NumPy refuses from 2.4 on.
    """
    return int(tensor.handle.data.item())


def _of_bfloat16(
    plain: Callable[..., Any], count: int, handle: Any, language: Any
) -> Any:
    """Have an operator compute in FP32 what is bfloat16, and round what it gives."""

    def operator(self: Any, *given: Any) -> Any:
        numbers = given[:count]
        if not any(number.dtype.scalar == language.bfloat16 for number in numbers):
            result = plain(self, *given)
            if result.data.dtype != np.bool_:
                return result
            # what compares gives true and false, of which Triton keeps the old type
            return handle(result.data, language.int1)
        wide = [
            handle(widened(number.data), language.float32)
            if number.dtype.scalar == language.bfloat16
            else number
            for number in numbers
        ]
        result = plain(self, *wide, *given[count:])
        # what compares gives true and false
        if result.data.dtype == np.float32:
            return handle(narrowed(result.data), language.bfloat16)
        return handle(result.data, language.int1)

    return operator


def _mend_casts(builder: Any, handle: Any, language: Any) -> None:
    plain = builder.cast_impl

    def cast_impl(self: Any, given: Any, wanted: Any) -> Any:
        if given.dtype.scalar == language.bfloat16:
            given = handle(widened(given.data), language.float32)
        if wanted.scalar == language.bfloat16:
            return handle(narrowed(given.data), language.bfloat16)
        if given.data.dtype.kind == "f" and wanted.scalar.is_int():
            whole = handle(_whole(given.data, wanted.scalar), wanted.scalar)
            return plain(self, whole, wanted)
        return plain(self, given, wanted)

    def get_bf16(self: Any, value: float) -> Any:
        return handle(narrowed(np.array([value])), language.bfloat16)

    builder.cast_impl, builder.get_bf16 = cast_impl, get_bf16


def _whole(numbers: Numbers, kind: Any) -> Numbers:
    """Give what `cvt.rzi` makes of numbers: the nearest that there is, and 0 of NaN."""
    bits = max(kind.int_bitwidth, 32)
    dtype = np.dtype(f"{'i' if kind.is_int_signed() else 'u'}{bits // 8}")
    least, most = np.iinfo(dtype).min, np.iinfo(dtype).max
    is_wide = bits == 64 or numbers.dtype == np.float64
    of_nan = np.array(1 << (bits - 1) if is_wide else 0, f"u{bits // 8}").view(dtype)
    # of the largest as a float, it is the next one already
    is_large, is_small = numbers >= float(most), numbers <= float(least)
    is_fit = ~(is_large | is_small | np.isnan(numbers))
    whole = np.where(is_fit, numbers, 0).astype(dtype)
    limits = [dtype.type(most), dtype.type(least), of_nan]
    return np.select([is_large, is_small, np.isnan(numbers)], limits, whole)


def _mend_reductions(operations: Any, language: Any) -> None:
    """Have Triton's own reductions and scans, which NumPy does, see numbers."""
    plain = operations.apply

    def apply(self: Any, given: Any) -> Any:
        if not isinstance(given, tuple):
            return self.apply((given,))[0]
        of_triton = vars(language.standard).values()
        if not any(self.combine_fn is function for function in of_triton):
            return plain(self, given)
        results = plain(self, tuple(wide(self, tensor) for tensor in given))
        return tuple(
            narrow(self, result) if one.dtype == language.bfloat16 else result
            for result, one in zip(results, given, strict=True)
        )

    def wide(self: Any, given: Any) -> Any:
        if given.dtype != language.bfloat16:
            return given
        return self.to_tensor(widened(given.handle.data), language.float32)

    def narrow(self: Any, result: Any) -> Any:
        bits = narrowed(result.handle.data)
        has_sides = bool(result.type.is_block())
        return self.to_tensor(bits if has_sides else bits.item(), language.bfloat16)

    operations.apply = apply


def _mend_own_reductions(interpreter: Any) -> None:
    """Have a learner's function combine whole blocks, not one element after another.

    One with an `if` takes elements alone: for it all is as in Triton's interpreter.
    """
    reduce_plainly = interpreter.ReduceOps.generic_reduce
    scan_plainly = interpreter.ScanOps.generic_scan

    def combined(self: Any, dtypes: list[Any], *sides: list[Numbers]) -> list[Numbers]:
        given = [
            self.to_tensor(np.ascontiguousarray(numbers), dtype)
            for side in sides
            for numbers, dtype in zip(side, dtypes, strict=True)
        ]
        results = self.combine_fn.fn(*given)
        results = results if isinstance(results, tuple) else (results,)
        return [
            np.broadcast_to(
                getattr(getattr(result, "handle", None), "data", result), one.shape
            ).astype(one.dtype)
            for result, one in zip(results, sides[0], strict=True)
        ]

    def generic_reduce(self: Any, given: Any) -> Any:
        dtypes = [one.dtype for one in given]
        parts = [one.handle.data for one in given]
        sides = parts[0].ndim
        if self.axis is None:
            parts = [part.reshape(-1) for part in parts]
        parts = [np.moveaxis(part, self.axis or 0, 0) for part in parts]
        try:
            while len(parts[0]) > 1:
                evens, odds = ([part[at::2] for part in parts] for at in (0, 1))
                parts = combined(self, dtypes, evens, odds)
        except ValueError:
            return reduce_plainly(self, given)
        parts = [part[0] for part in parts]
        if self.keep_dims and self.axis is None:
            parts = [part.reshape((1,) * sides) for part in parts]
        elif self.keep_dims:
            parts = [np.expand_dims(part, self.axis) for part in parts]
        return [
            self.to_tensor(part if part.ndim else part.item(), dtype)
            for part, dtype in zip(parts, dtypes, strict=True)
        ]

    def generic_scan(self: Any, given: Any) -> Any:
        dtypes = [one.dtype for one in given]
        parts = [np.moveaxis(one.handle.data, self.axis, 0) for one in given]
        step = 1
        try:
            while step < len(parts[0]):
                before = [np.roll(part, step, 0) for part in parts]
                both = combined(self, dtypes, before, parts)
                for part, first in zip(both, parts, strict=True):
                    part[:step] = first[:step]
                parts, step = both, 2 * step
        except ValueError:
            return scan_plainly(self, given)
        return [
            self.to_tensor(np.ascontiguousarray(np.moveaxis(part, 0, self.axis)), dtype)
            for part, dtype in zip(parts, dtypes, strict=True)
        ]

    interpreter.ReduceOps.generic_reduce = generic_reduce
    interpreter.ScanOps.generic_scan = generic_scan


def _mend_dots(builder: Any, handle: Any, language: Any) -> None:
    plain = builder.create_dot
    tf32 = importlib.import_module("triton._C.libtriton").ir.INPUT_PRECISION.TF32

    def create_dot(
        self: Any, a: Any, b: Any, total: Any, precision: Any, *more: Any
    ) -> Any:
        def read(tile: Any) -> Any:
            if tile.dtype.scalar == language.bfloat16:
                return handle(widened(tile.data), language.float32)
            if tile.dtype.scalar == language.float32 and precision == tf32:
                bits = np.ascontiguousarray(tile.data).view(np.uint32)
                return handle((bits & _OF_TF32).view(np.float32), language.float32)
            return tile

        return plain(self, read(a), read(b), total, precision, *more)

    builder.create_dot = create_dot


def _mend_memory(builder: Any, interpreter: Any, language: Any) -> None:
    load, update = builder.create_masked_load, builder.create_atomic_rmw
    handle = interpreter.TensorHandle

    def create_masked_load(
        self: Any, at: Any, mask: Any, other: Any, *more: Any, **named: Any
    ) -> Any:
        # of one element Triton takes `other=0.0` for none: a tensor of 0 is false
        if other is None and at.data.size > 1:
            kind = at.get_element_ty()
            dtype = interpreter._get_np_dtype(kind)
            is_bfloat16 = kind == language.bfloat16
            left_out = _anything(at.data.shape, np.float32 if is_bfloat16 else dtype)
            if is_bfloat16:
                left_out = narrowed(left_out)
            is_asked = np.asarray(mask.data)
            other = handle(np.where(is_asked, dtype.type(0), left_out), kind)
        return load(self, at, mask, other, *more, **named)

    def create_atomic_rmw(self: Any, kind: Any, at: Any, given: Any, *more: Any) -> Any:
        if given.dtype.scalar == language.bfloat16:
            raise TypeError("atomics of bfloat16 can't be had here: use float32")
        return update(self, kind, at, given, *more)

    builder.create_masked_load = create_masked_load
    builder.create_atomic_rmw = create_atomic_rmw


def _anything(shape: tuple[int, ...], dtype: Any) -> Numbers:
    """Give infinities of both signs, which neither sums nor extremes hide."""
    dtype = np.dtype(dtype)
    large = np.inf if dtype.kind == "f" else np.iinfo(dtype).max // 2
    filler = np.full(shape, large, dtype)
    filler.flat[1::2] = np.negative(filler.flat[1::2])
    return filler
