"""`torch.einsum` of one or two tensors, as sums, turns and one product of matrices."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from warpbook_labs.simulated.recording.elementwise import compute
from warpbook_labs.simulated.recording.matrices import bmm
from warpbook_labs.simulated.recording.reducing import sum as sum_of
from warpbook_labs.simulated.recording.refusing import refuse
from warpbook_labs.simulated.recording.tensor import Tensor
from warpbook_labs.simulated.recording.views import permute, reshape


def einsum(equation: str, *operands: Any) -> Tensor:
    """Sums of products, by letters for sides."""
    if len(operands) == 1 and not isinstance(operands[0], Tensor):
        operands = tuple(operands[0])
    given, arrow, wanted = equation.replace(" ", "").partition("->")
    inputs = given.split(",")
    if not arrow:
        letters = sorted(set(given) - {","})
        wanted = "".join(letter for letter in letters if given.count(letter) == 1)
    _check(equation, [*inputs, wanted], inputs, operands)
    lengths: dict[str, int] = {}
    for letters_of, tensor in zip(inputs, operands, strict=True):
        for letter, side in zip(letters_of, tensor.array.shape, strict=True):
            if lengths.setdefault(letter, side) != side:
                raise RuntimeError(
                    f"einsum(): subscript {letter} has size {side} for one operand and "
                    f"size {lengths[letter]} for another"
                )
    if not set(wanted) <= set(lengths):
        raise RuntimeError("einsum(): an output subscript does not appear in any input")
    if len(operands) == 1:
        kept, result = _summed(inputs[0], operands[0], wanted)
        return _turned(result, kept, wanted)
    first, a = _summed(inputs[0], operands[0], inputs[1] + wanted)
    second, b = _summed(inputs[1], operands[1], inputs[0] + wanted)
    both = [letter for letter in first if letter in second]
    batch = "".join(letter for letter in both if letter in wanted)
    met = "".join(letter for letter in both if letter not in wanted)
    rows = "".join(letter for letter in first if letter not in second)
    columns = "".join(letter for letter in second if letter not in first)

    def length(letters: str) -> int:
        return math.prod(lengths[letter] for letter in letters)

    n, k = length(batch), length(met)
    left = reshape(_turned(a, first, batch + rows + met), n, length(rows), k)
    right = reshape(_turned(b, second, batch + met + columns), n, k, length(columns))
    named = batch + rows + columns
    product = bmm(left, right) if met else compute("mul", [left, right])
    shape = [lengths[letter] for letter in named]
    return _turned(reshape(product, shape), named, wanted)


def _check(
    equation: str,
    groups: Sequence[str],
    inputs: Sequence[str],
    operands: Sequence[Tensor],
) -> None:
    is_plain = all(not group or group.isalpha() for group in groups)
    is_single = all(len(set(group)) == len(group) for group in groups)
    if not (is_plain and is_single and 1 <= len(inputs) <= 2):
        refuse(f"einsum of {equation!r}; it has one or two tensors, each letter once")
    ranks = [tensor.ndim for tensor in operands]
    if ranks != [len(group) for group in inputs]:
        raise RuntimeError(
            "einsum(): the number of subscripts in the equation does not match the "
            "number of dimensions of the operands"
        )


def _summed(letters: str, tensor: Tensor, needed: str) -> tuple[str, Tensor]:
    """Without the sides that nobody else asks for."""
    gone = [at for at, letter in enumerate(letters) if letter not in needed]
    if not gone:
        return letters, tensor
    return "".join(one for one in letters if one in needed), sum_of(tensor, gone)


def _turned(tensor: Tensor, letters: str, wanted: str) -> Tensor:
    if letters == wanted:
        return tensor
    return permute(tensor, [letters.index(letter) for letter in wanted])
