"""What is run of a case: buffers of global memory, and launches one after the other."""

from __future__ import annotations

import re

from msgspec import Struct

#: of a grid or a block: x, y, z
Dim = tuple[int, int, int]


class Memory(Struct, frozen=True):
    """A buffer of global memory."""

    name: str
    size_bytes: int
    #: None: nobody has written it
    data: bytes | None = None
    #: what it holds in the end is told
    is_told: bool = True
    #: of a result: the first byte that nobody has written
    first_unwritten: int | None = None
    #: of its elements, which Triton asks
    dtype: str = "uint8"
    #: how far off the alignment of a buffer it begins
    off_bytes: int = 0
    #: of a result: for each 4 bytes the line of the source that wrote them last, as
    #: uint16, and 0 where it is not known
    writer_lines: bytes = b""
    #: the same of the line that computed them, where another one copied them there
    computed_lines: bytes = b""

    @property
    def is_input(self) -> bool:
        return self.data is not None and not self.is_told


class BufferArgument(Struct, frozen=True, tag="buffer"):
    """The address of a buffer."""

    name: str


class NumberArgument(Struct, frozen=True, tag="number"):
    """A number as it lies in memory."""

    data: bytes
    dtype: str = "uint8"


class IntegerArgument(Struct, frozen=True, tag="integer"):
    """A whole number, as wide as the kernel's parameter."""

    value: int


class FloatArgument(Struct, frozen=True, tag="float"):
    """A floating number, as wide as the kernel's parameter."""

    value: float


Argument = BufferArgument | NumberArgument | IntegerArgument | FloatArgument


class Launch(Struct, frozen=True):
    """One launch of a kernel."""

    kernel: str
    grid: Dim
    block: Dim
    arguments: tuple[Argument, ...]
    dynamic_shared_bytes: int = 0
    #: of Triton: numbers by parameter or option
    constants: tuple[tuple[str, int | float], ...] = ()

    @property
    def even(self) -> tuple[int, ...]:
        """Tell which arguments are whole numbers that 16 divides."""
        return tuple(
            place
            for place, argument in enumerate(self.arguments)
            if isinstance(argument, IntegerArgument) and argument.value % 16 == 0
        )

    @property
    def entry(self) -> str:
        """Name the compiled kernel; Triton makes one for each kind of numbers."""
        if not self.constants:
            return self.kernel
        numbers = [f"{name}_{number}" for name, number in self.constants]
        even = [f"even_{place}" for place in self.even]
        name = "__".join([self.kernel, *numbers, *even])
        return re.sub(r"\W", "_", name.replace("-", "m"))


class Run(Struct, frozen=True):
    """Memory, and launches one after the other."""

    memory: tuple[Memory, ...]
    launches: tuple[Launch, ...]
