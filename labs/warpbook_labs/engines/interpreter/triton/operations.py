"""What a translated Triton kernel calls: the only ways that it has to anything.

Values are tensors, numbers, texts, types, tuples and kernels of the same file. What is
computed at compile time is a plain number here: no constant of Triton's is ever seen.
Where Triton's compiler has a rule (what an assignment, a loop or `and` gives), that is
followed, and not Python's.
"""

from __future__ import annotations

import importlib
import operator
from collections.abc import Callable, Iterator
from typing import Any

_BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "Add": operator.add,
    "Sub": operator.sub,
    "Mult": operator.mul,
    "Div": operator.truediv,
    "FloorDiv": operator.floordiv,
    "Mod": operator.mod,
    "Pow": operator.pow,
    "LShift": operator.lshift,
    "RShift": operator.rshift,
    "BitAnd": operator.and_,
    "BitOr": operator.or_,
    "BitXor": operator.xor,
}
_UNARY: dict[str, Callable[[Any], Any]] = {
    "USub": operator.neg,
    "UAdd": operator.pos,
    "Invert": operator.invert,
}
_ORDERED: dict[str, Callable[[Any, Any], Any]] = {
    "Lt": operator.lt,
    "LtE": operator.le,
    "Gt": operator.gt,
    "GtE": operator.ge,
}
_NUMBERS = (bool, int, float)
#: in bits: larger whole numbers are no number of a kernel's
_WIDEST = 128


class Operations:
    """All that a kernel's body calls, each by its own name with a point before it."""

    def __init__(self, interpreter: Any) -> None:
        self._tl = importlib.import_module("triton.language")
        self._triton = importlib.import_module("triton")
        self._core = importlib.import_module("triton.language.core")
        self._semantic = interpreter.interpreter_semantic
        self._kernel_type = interpreter.InterpretedFunction
        self._tensor = self._tl.tensor
        descriptor = self._core.tensor_descriptor_base
        self._tuples = (tuple, list, self._core.tuple)
        self._owners = (self._tensor, self._tl.dtype, descriptor)

    def by_name(self) -> dict[str, Callable[..., Any]]:
        """Give what a translated body finds among its global names."""
        known = (
            *(self.assigned, self.attribute, self.binary, self.builtin, self.called),
            *(self.chosen, self.compared, self.constant, self.goes_on, self.item),
            *(
                self.joined,
                self.method,
                self.rounds,
                self.triton,
                self.truth,
                self.unary,
            ),
            self.value,
        )
        return {f".{way.__name__}": way for way in known} | {".slice": slice}

    def assigned(self, value: Any) -> Any:
        """Give what a name holds after `name = value`: numbers become tensors."""
        value = self._plain(value)
        if isinstance(value, self._tuples):
            return tuple(self.assigned(part) for part in value)
        if isinstance(value, _NUMBERS):
            return self._semantic.to_tensor(value)
        if value is None or isinstance(value, self._owners):
            return value
        raise TypeError(f"{_kind(value)} can't be given to a name")

    def constant(self, value: Any) -> Any:
        """Give what a name holds after `name: tl.constexpr = value`."""
        value = self._plain(value)
        if isinstance(value, self._tensor):
            raise TypeError("a tl.constexpr must be known when the kernel is compiled")
        return value

    def attribute(self, owner: Any, name: str) -> Any:
        """Give `owner.name`, where the name is one of the language's."""
        owner = self._plain(owner)
        if isinstance(owner, _NUMBERS) and name == "value":
            return owner
        if not isinstance(owner, self._owners):
            raise AttributeError(f"{_kind(owner)} has no {name}")
        return self._plain(getattr(owner, name))

    def method(self, owner: Any, name: str, *given: Any, **named: Any) -> Any:
        """Do `owner.name(...)`, where the name is one of the language's."""
        owner = self._plain(owner)
        if not isinstance(owner, self._owners):
            raise AttributeError(f"{_kind(owner)} has no {name}()")
        return self._plain(getattr(owner, name)(*given, **named))

    def triton(self, name: str, *given: Any, **named: Any) -> Any:
        if name == "tl.constexpr":
            return self.constant(*given, **named)
        return self._plain(self._at(name)(*given, **named))

    def value(self, name: str) -> Any:
        return self._plain(self._at(name))

    def called(self, kernel: Any, *given: Any, **named: Any) -> Any:
        if not isinstance(kernel, self._kernel_type):
            raise TypeError(f"{_kind(kernel)} can't be called")
        return kernel.fn(*map(self._plain, given), **named)

    def builtin(self, name: str, *given: Any, **named: Any) -> Any:
        """Call what a kernel has of Python's own functions."""
        given = tuple(map(self._plain, given))
        if name == "print":
            return self._tl.device_print(*given, **named)
        if name in ("min", "max"):
            if all(isinstance(number, _NUMBERS) for number in given):
                return (min if name == "min" else max)(*given)
            first, *others = given
            for other in others:
                both = self._tl.minimum if name == "min" else self._tl.maximum
                first = both(first, other, **named)
            return first
        (number,) = given
        if name == "len":
            return len(self._of_tuple(number))
        return float(number) if name == "float" else int(number)

    def binary(self, name: str, left: Any, right: Any) -> Any:
        left, right = self._plain(left), self._plain(right)
        if name == "Add" and isinstance(left, self._tuples):
            return (*left, *self._of_tuple(right))
        if name in ("Pow", "LShift") and isinstance(left, int):
            if isinstance(right, int) and left.bit_length() * right > _WIDEST**2:
                raise OverflowError("the number is too large")
        return _BINARY[name](self._number(left), self._number(right))

    def unary(self, name: str, operand: Any) -> Any:
        operand = self._plain(operand)
        if name == "Not":
            if isinstance(operand, self._tensor):
                return operand.__not__()
            return not operand
        return _UNARY[name](self._number(operand))

    def chosen(self, test: Any, value: Any) -> Any:
        """Give what `value if test else ...` comes to, where a tensor may decide."""
        is_known = not isinstance(self._plain(test), self._tensor)
        return value if is_known else self._semantic.to_tensor(value)

    def compared(self, left: Any, *parts: Any) -> Any:
        """Compare in a row; `parts` are an operator's name and a value, by turns."""
        results = []
        left = self._plain(left)
        for name, right in zip(parts[::2], map(self._plain, parts[1::2]), strict=True):
            if name in ("Is", "IsNot"):
                result = (left is None) == (name == "Is")
            elif name in _ORDERED:
                result = _ORDERED[name](self._number(left), self._number(right))
            elif self._is_known(left) and self._is_known(right):
                result = left == right if name == "Eq" else left != right
            else:
                raise TypeError(f"{_kind(left)} can't be compared")
            results.append(result)
            left = right
        total = results[0]
        for result in results[1:]:
            total = self.joined("And", total, result)
        return total

    def goes_on(self, which: str, first: Any) -> bool:
        """Tell whether `and` or `or` looks at what comes next."""
        first = self._plain(first)
        return isinstance(first, self._tensor) or bool(first) == (which == "And")

    def joined(self, which: str, first: Any, second: Any) -> Any:
        """Give what `and` or `or` makes of two: a constant decides or is left out."""
        first, second = self._plain(first), self._plain(second)
        if not isinstance(first, self._tensor):
            return second if bool(first) == (which == "And") else first
        if not isinstance(second, self._tensor):
            return first if bool(second) == (which == "And") else second
        both = first.logical_and if which == "And" else first.logical_or
        return both(second)

    def truth(self, value: Any) -> bool:
        value = self._plain(value)
        if isinstance(value, self._tensor) and value.handle.data.size != 1:
            raise ValueError("a block is neither true nor false: use tl.where")
        return bool(value)

    def item(self, owner: Any, at: Any) -> Any:
        """Give `owner[at]`, of a tensor or a tuple."""
        owner, at = self._plain(owner), self._plain(at)
        if isinstance(owner, self._tensor):
            return owner[at]
        return self._plain(self._of_tuple(owner)[at])

    def rounds(
        self, name: str, *given: Any, step: Any = None, **_: Any
    ) -> Iterator[Any]:
        """Go over a range: tensors, as the compiler has them, or constants."""
        begin, end, *more = map(self._plain, given if len(given) > 1 else (0, *given))
        by = self._plain(step) if step is not None else (*more, 1)[0]
        numbers = range(*map(operator.index, (begin, end, by)))
        if name == "tl.static_range":
            yield from numbers
            return
        dtype = self._tl.int32
        for bound in (begin, end, by):
            of_bound = self._semantic.to_tensor(bound).dtype
            dtype = self._semantic.integer_promote_impl(dtype, of_bound)
        for number in numbers:
            yield self._semantic.to_tensor(number).to(dtype)

    def _plain(self, value: Any) -> Any:
        return value.value if isinstance(value, self._core.constexpr) else value

    def _number(self, value: Any) -> Any:
        if isinstance(value, (*_NUMBERS, self._tensor)):
            return value
        raise TypeError(f"{_kind(value)} is no number")

    def _of_tuple(self, value: Any) -> Any:
        if isinstance(value, self._tuples):
            return value
        raise TypeError(f"{_kind(value)} has no parts")

    def _is_known(self, value: Any) -> bool:
        known = (*_NUMBERS, str, self._tensor, self._tl.dtype)
        return value is None or isinstance(value, known)

    def _at(self, name: str) -> Any:
        first, *others = name.split(".")
        place = self._tl if first == "tl" else self._triton
        for other in others:
            place = getattr(place, other)
        return place


def _kind(value: Any) -> str:
    """Name a value without a word of its own."""
    names = {str: "a text", type(None): "None", tuple: "a tuple", list: "a list"}
    if isinstance(value, _NUMBERS):
        return "a number"
    return names.get(type(value), "this")
