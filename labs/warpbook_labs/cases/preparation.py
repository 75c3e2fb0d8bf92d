"""A case made ready to be launched: its numbers, its memory, and what is right."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from warpbook_labs.cases import execution
from warpbook_labs.cases.comparison import (
    NOTHING,
    WrongElement,
    first_wrong,
    with_inputs,
)
from warpbook_labs.cases.promises import not_a_bound, not_a_dict, not_numbers
from warpbook_labs.cases.sampling import DrawnCase
from warpbook_labs.errors import BadLab, BadRule, TooBusy
from warpbook_labs.lab.expressions import BadExpression, value
from warpbook_labs.lab.launch_rule import Launch, Rule
from warpbook_labs.lab.loaded import LoadedLab
from warpbook_labs.lab.spec import Parameter

#: what a submission may have as scratch memory, in all
MOST_SCRATCH_BYTES = 32 << 20

Arrays = dict[str, Any]


class Answers(NamedTuple):
    """What outputs must hold, and how far each may be off; by parameter."""

    expected: Arrays
    tolerance: Arrays


class OwnPython:
    """A lab's own Python, held to what it promises."""

    def __init__(self, loaded: LoadedLab) -> None:
        self._loaded = loaded

    def inputs(
        self, sizes: dict[str, int], values: str, rng: np.random.Generator
    ) -> Arrays:
        """Draw the inputs of a case.

        Raises:
            BadLab: it fails, or gives what it must not; so do those below.
        """
        drawn = self._ask("inputs", dict(sizes), values, rng)
        self._held_to("inputs", ("input", "inout", "scalar"), drawn, sizes)
        return drawn

    def expected(self, given: Arrays, sizes: dict[str, int]) -> Arrays:
        right = self._ask("expected", given, dict(sizes))
        self._held_to("expected", ("output", "inout"), right, sizes)
        return right

    def tolerance(
        self, given: Arrays, sizes: dict[str, int], expected: Arrays
    ) -> Arrays:
        bounds = self._ask("tolerance", given, dict(sizes), expected)
        for parameter in self._parameters("tolerance", ("output", "inout"), bounds):
            right, shape = (
                np.asarray(expected[parameter.name]),
                shape_of(parameter, sizes),
            )
            words = not_a_bound(parameter.name, bounds[parameter.name], right, shape)
            if words:
                raise self._bad("tolerance", words)
        return bounds

    def shaped(
        self,
        function: str,
        arrays: Arrays,
        parameter: Parameter,
        sizes: Mapping[str, int],
    ) -> NDArray[Any]:
        held, shape = np.asarray(arrays[parameter.name]), shape_of(parameter, sizes)
        if held.size != np.prod(shape, dtype=np.int64):
            raise self._bad(
                function, f"`{parameter.name}` is {held.shape}, and must be {shape}."
            )
        return held.reshape(shape)

    def answers(self, given: Arrays, sizes: dict[str, int]) -> Answers:
        """Compute what is right of these inputs."""
        expected = self.expected(given, sizes)
        return Answers(expected, self.tolerance(given, sizes, expected))

    def first_wrong(
        self,
        given: Arrays,
        sizes: dict[str, int],
        memory: Mapping[str, execution.Memory],
        answers: Answers | None = None,
    ) -> WrongElement | None:
        """Compare what outputs hold with what is right.

        Args:
            answers: of these inputs, where they were computed before.
        """
        expected, tolerance = answers or self.answers(given, sizes)
        for parameter in self._loaded.lab.parameters:
            if parameter.kind not in ("output", "inout"):
                continue
            held = memory[parameter.name]
            got: NDArray[Any] = np.frombuffer(held.data or b"", parameter.dtype)
            got = got.reshape(shape_of(parameter, sizes))
            right = self.shaped("expected", expected, parameter, sizes)
            allowed = tolerance[parameter.name]
            wrong = first_wrong(
                parameter.name, got, right, allowed, held.first_unwritten
            )
            if self._loaded.compared is not None:
                self._loaded.compared(got, right, allowed)
            if wrong is not None:
                shape = shape_of(parameter, sizes)
                line, computed_line = (
                    _line_of(wrong, lines, got.itemsize, shape)
                    for lines in (held.writer_lines, held.computed_lines)
                )
                if computed_line == line:
                    computed_line = None
                return msgspec.structs.replace(
                    wrong, line=line, computed_line=computed_line
                )
        return None

    def _ask(self, function: str, *given: Any) -> Arrays:
        try:
            arrays: Arrays = getattr(self._loaded.cases, function)(*given)
        except TooBusy:
            raise
        except Exception as problem:  # noqa: BLE001 - whatever it is, the lab is bad
            raise self._bad(function, f"{type(problem).__name__}: {problem}") from None
        words = not_a_dict(arrays)
        if words:
            raise self._bad(function, words)
        return arrays

    def _parameters(
        self, function: str, kinds: tuple[str, ...], arrays: Arrays
    ) -> Iterator[Parameter]:
        """Give the parameters that it must give, each with numbers for it."""
        for parameter in self._loaded.lab.parameters:
            if parameter.kind not in kinds:
                continue
            if parameter.name not in arrays:
                raise self._bad(function, f"it gives no `{parameter.name}`.")
            words = not_numbers(parameter, arrays[parameter.name])
            if words:
                raise self._bad(function, words)
            yield parameter

    def _held_to(
        self,
        function: str,
        kinds: tuple[str, ...],
        arrays: Arrays,
        sizes: Mapping[str, int],
    ) -> None:
        for parameter in self._parameters(function, kinds, arrays):
            if is_buffer(parameter):
                # it refuses a wrong shape
                self.shaped(function, arrays, parameter, sizes)

    def _bad(self, function: str, message: str) -> BadLab:
        return BadLab(f"{self._loaded.folder / 'cases.py'}: {function}: {message}")


class Prepared:
    """A case with its numbers, ready to be launched."""

    def __init__(self, loaded: LoadedLab, rule: Rule, case: DrawnCase) -> None:
        """Draw the case's numbers, and read how it is launched.

        Raises:
            BadLab: the lab's own Python fails.
            BadRule: the rule can't be followed with these sizes.
        """
        self.case, self._loaded = case, loaded
        self._python = OwnPython(loaded)
        generator = np.random.default_rng(case.seed)
        self._off = _off_by(loaded, case)
        self._answers: Answers | None = None
        self.given = self._python.inputs(case.sizes, case.values, generator)
        self.run = execution.Run(
            tuple(self._filled(buffer) for buffer in memory(loaded, rule, case.sizes)),
            launches(loaded, rule, case.sizes, self.given),
        )

    def _filled(self, held: execution.Memory) -> execution.Memory:
        """Give a buffer what it holds at first."""
        for parameter in self._loaded.lab.parameters:
            if parameter.name == held.name and parameter.kind in ("input", "inout"):
                sizes = self.case.sizes
                drawn = self._python.shaped("inputs", self.given, parameter, sizes)
                exact = np.ascontiguousarray(drawn, parameter.dtype)
                held = msgspec.structs.replace(held, data=exact.tobytes())
        return msgspec.structs.replace(held, off_bytes=self._off.get(held.name, 0))

    def dtype_of(self, name: str) -> str:
        """Name the type of a parameter's elements."""
        dtypes = {
            parameter.name: parameter.dtype for parameter in self._loaded.lab.parameters
        }
        return dtypes[name]

    @property
    def is_aligned(self) -> bool:
        """Tell whether all buffers begin where alignment has them begin."""
        return not any(self._off.values())

    def answer(self) -> None:
        """Compute now what is right, for `wrong` to find it there.

        Raises:
            BadLab: the lab's own Python fails.
        """
        self._answers = self._python.answers(self.given, self.case.sizes)

    def wrong(self, memory: Mapping[str, execution.Memory]) -> WrongElement | None:
        """Compare what the launches left with what is right."""
        wrong = self._python.first_wrong(
            self.given, self.case.sizes, memory, self._answers
        )
        if wrong is None or self.case.is_hidden:
            return wrong
        return with_inputs(wrong, self._loaded.lab, self.given, self.case.sizes)


def _off_by(loaded: LoadedLab, case: DrawnCase) -> dict[str, int]:
    """Have some buffers of hidden cases begin one element off, if the lab says so."""
    if not (loaded.lab.hidden.unaligned and case.is_hidden):
        return {}
    rng = random.Random(case.seed)
    return {
        parameter.name: np.dtype(parameter.dtype).itemsize * rng.randrange(2)
        for parameter in loaded.lab.parameters
        if parameter.shape
    }


def _line_of(
    wrong: WrongElement, by_word: bytes, item_bytes: int, shape: tuple[int, ...]
) -> int | None:
    """Give the line of an element, as a jailed process tells it of each 4 bytes."""
    lines = np.frombuffer(by_word[: len(by_word) // 2 * 2], "<u2")
    at = int(np.ravel_multi_index(wrong.index, shape)) if shape else 0
    word = at * item_bytes // 4
    if wrong.got == NOTHING or word >= len(lines):
        return None
    return int(lines[word]) or None


def shape_of(parameter: Parameter, sizes: Mapping[str, int]) -> tuple[int, ...]:
    """Give the sides of a buffer in a case.

    Raises:
        BadLab: with these sizes there is no such buffer.
    """
    sides = []
    for text in parameter.shape:
        try:
            sides.append(value(text, sizes))
        except BadExpression as problem:
            raise _no_side(parameter, sizes, str(problem)) from None
        if sides[-1] < 0:
            raise _no_side(parameter, sizes, f"`{text}` is {sides[-1]}.")
    return tuple(sides)


def _no_side(parameter: Parameter, sizes: Mapping[str, int], words: str) -> BadLab:
    drawn = ", ".join(f"{name} = {size}" for name, size in sizes.items())
    return BadLab(f"lab.toml: parameters.{parameter.name}.shape: with {drawn} {words}")


def is_buffer(parameter: Parameter) -> bool:
    return parameter.kind in ("input", "output", "inout")


def memory(
    loaded: LoadedLab, rule: Rule, sizes: Mapping[str, int]
) -> tuple[execution.Memory, ...]:
    """Give the buffers of a case, with nothing in them yet.

    Raises:
        BadRule: its scratch memory is invalid.
    """
    buffers = [
        execution.Memory(
            parameter.name,
            int(np.prod(shape_of(parameter, sizes), dtype=np.int64))
            * np.dtype(parameter.dtype).itemsize,
            is_told=parameter.kind != "input",
            dtype=parameter.dtype,
        )
        for parameter in loaded.lab.parameters
        if is_buffer(parameter)
    ]
    return (*buffers, *_scratch(loaded, rule, sizes))


def _scratch(
    loaded: LoadedLab, rule: Rule, sizes: Mapping[str, int]
) -> list[execution.Memory]:
    arrays, total = [], 0
    taken = {parameter.name for parameter in loaded.lab.parameters}
    for scratch in rule.scratch:
        if scratch.name in taken:
            raise BadRule(f"Scratch memory {scratch.name}: the name is taken.")
        taken.add(scratch.name)
        try:
            length = value(scratch.length, {**scratch.known, **sizes})
        except BadExpression as problem:
            raise BadRule(f"Scratch memory {scratch.name}: {problem}") from None
        size_bytes = length * np.dtype(scratch.dtype).itemsize
        total += size_bytes
        if length < 0 or total > MOST_SCRATCH_BYTES:
            raise BadRule(
                f"Scratch memory {scratch.name}: {length:,} elements; all of it may "
                f"have {MOST_SCRATCH_BYTES >> 20} MiB."
            )
        held = execution.Memory(
            scratch.name, size_bytes, is_told=False, dtype=scratch.dtype
        )
        arrays.append(held)
    return arrays


def launches(
    loaded: LoadedLab, rule: Rule, sizes: Mapping[str, int], given: Mapping[str, Any]
) -> tuple[execution.Launch, ...]:
    """Give the launches of a case.

    Args:
        given: its inputs; only numbers among them are looked at.

    Raises:
        BadRule: an expression can't be computed.
    """
    buffers = {
        parameter.name for parameter in loaded.lab.parameters if is_buffer(parameter)
    }
    buffers |= {scratch.name for scratch in rule.scratch}
    numbers = {
        parameter.name: parameter.dtype
        for parameter in loaded.lab.parameters
        if parameter.kind == "scalar"
    }

    def argument(text: str, launch: Launch) -> execution.Argument:
        if text in buffers:
            return execution.BufferArgument(text)
        if text in numbers:
            held = np.asarray(given[text], numbers[text])
            return execution.NumberArgument(held.tobytes(), numbers[text])
        written = launch.number(text, sizes)
        if isinstance(written, float):
            return execution.FloatArgument(written)
        return execution.IntegerArgument(written)

    checked_launches = []
    for launch in rule.launches:
        grid, block, shared_bytes = launch.sides(sizes)
        arguments = tuple(argument(text, launch) for text in launch.arguments)
        constants = tuple(
            (name, launch.number(text, sizes)) for name, text in launch.constants
        )
        checked_launches.append(
            execution.Launch(
                launch.kernel, grid, block, arguments, shared_bytes, constants
            )
        )
    return tuple(checked_launches)
