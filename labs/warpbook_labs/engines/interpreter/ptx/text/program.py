"""The parts of a PTX program as they stand in its text, and a kernel put together."""

from __future__ import annotations

from dataclasses import dataclass, field

#: with `.sync` they wait for other threads of their warp
_WARP_WIDE = frozenset({"shfl", "vote", "match", "redux", "elect", "mma", "ldmatrix"})


@dataclass(frozen=True)
class Register:
    """A register, or a special one such as `%tid.x`."""

    name: str


@dataclass(frozen=True)
class Immediate:
    """A number; `bits` is what a floating one is in binary32 or binary64."""

    bits: int
    #: 32 or 64 for a floating number, 0 for an integer
    float_bits: int = 0


@dataclass(frozen=True)
class Symbol:
    """The address of a variable, a label or a function."""

    name: str
    offset: int = 0


@dataclass(frozen=True)
class Address:
    """`[base + offset]`."""

    base: Register | Symbol | Immediate
    offset: int = 0


@dataclass(frozen=True)
class Vector:
    """`{a, b}`; or, of a result with a predicate beside it, `a|b`."""

    parts: tuple[Operand, ...]


@dataclass(frozen=True)
class Negated:
    """`!%p`."""

    register: Register


Operand = Register | Immediate | Symbol | Address | Vector | Negated


def parts_of(operand: Operand) -> tuple[Operand, ...]:
    """Give the parts of a vector, or what is none by itself."""
    return operand.parts if isinstance(operand, Vector) else (operand,)


@dataclass(frozen=True)
class Instruction:
    """One instruction: `@%p add.s32 %r1, %r2, 3;`."""

    #: "add", and ("s32",)
    name: str
    modifiers: tuple[str, ...]
    operands: tuple[Operand, ...]
    guard: Register | Negated | None = None
    #: of the learner's source; None where the compiler does not tell
    line: int | None = None
    #: of calls that lead there, the inner ones first
    called_on: tuple[int, ...] = ()

    @property
    def lines(self) -> tuple[int, ...]:
        """Give its own line, then those of the calls that lead there."""
        return self.called_on if self.line is None else (self.line, *self.called_on)

    @property
    def text(self) -> str:
        """Give the whole opcode."""
        return ".".join((self.name, *self.modifiers))

    @property
    def is_warp_wide(self) -> bool:
        """Tell whether it waits for other threads of its warp."""
        if self.name in ("bar", "barrier"):
            return "warp" in self.modifiers
        return self.name in _WARP_WIDE and "sync" in self.modifiers


@dataclass(frozen=True)
class Call:
    """`call (result), function, (arguments);`."""

    function: str
    results: tuple[str, ...]
    arguments: tuple[str, ...]
    line: int | None = None
    #: of a call through a pointer: the name of what it takes and gives
    prototype: str = ""


@dataclass(frozen=True)
class Label:
    """A place to go to."""

    name: str


@dataclass(frozen=True)
class Targets:
    """The places that a `brx.idx` may go to."""

    name: str
    labels: tuple[str, ...]


@dataclass(frozen=True)
class Registers:
    """`.reg .f32 %f<4>;` is %f0 to %f3; without a count it is one."""

    prefix: str
    type: str
    count: int | None


@dataclass(frozen=True)
class Variable:
    """Memory with a name."""

    name: str
    #: "param", "local", "shared", "global" or "const"
    space: str
    #: of one element, such as "f32" or "b8"
    type: str
    size_bytes: int
    alignment_bytes: int
    #: what it holds at first; zeros beyond
    initial: bytes = b""
    #: `.extern .shared x[]`: the launch gives its size
    is_extern: bool = False
    #: by their bytes: functions whose addresses it holds at first
    addresses: tuple[tuple[int, str], ...] = ()


@dataclass(frozen=True)
class Prototype:
    """What functions take and give that are called through a pointer."""

    name: str
    results: tuple[Variable, ...]
    parameters: tuple[Variable, ...]


@dataclass(frozen=True)
class Scope:
    """`{ ... }`: names declared in it end with it."""

    body: tuple[Statement, ...]


Statement = (
    Instruction | Call | Label | Targets | Registers | Variable | Prototype | Scope
)


@dataclass(frozen=True)
class Function:
    """A kernel (an entry) or a function that a kernel calls."""

    name: str
    is_entry: bool
    results: tuple[Variable, ...]
    parameters: tuple[Variable, ...]
    #: None where it is only declared
    body: tuple[Statement, ...] | None
    #: of an entry: the sides that a launch may have, by directive, such as "maxntid"
    limits: dict[str, tuple[int, ...]] = field(default_factory=dict)


@dataclass
class Module:
    """All of one PTX text."""

    target: str = ""
    variables: dict[str, Variable] = field(default_factory=dict)
    functions: dict[str, Function] = field(default_factory=dict)


@dataclass(frozen=True)
class Placed:
    """A variable and where it is in its space."""

    variable: Variable
    offset: int


@dataclass
class Linked:
    """A kernel that can be run; all names are unique in it."""

    name: str
    parameters: tuple[Variable, ...]
    #: of its launches, as the kernel's directives have them
    limits: dict[str, tuple[int, ...]] = field(default_factory=dict)
    code: list[Instruction] = field(default_factory=list)
    #: positions in `code`, which may be its end
    labels: dict[str, int] = field(default_factory=dict)
    targets: dict[str, tuple[str, ...]] = field(default_factory=dict)
    #: type by name
    registers: dict[str, str] = field(default_factory=dict)
    #: of each block; the launch gives the size of `.extern` ones
    shared: dict[str, Placed] = field(default_factory=dict)
    shared_bytes: int = 0
    #: of each thread: arrays, and what is handed to functions
    local: dict[str, Placed] = field(default_factory=dict)
    local_bytes: int = 0
