"""Makes one list of instructions of a kernel and all that it calls.

Functions are put in where they are called, with names of their own, so that the
machine needs no call stack for each thread. Recursion can't be done so.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field

from warpbook_labs.engines.interpreter.ptx.errors import (
    NotPtx,
    PtxError,
    TooLarge,
    Unsupported,
)
from warpbook_labs.engines.interpreter.ptx.program import (
    Address,
    Call,
    Function,
    Immediate,
    Instruction,
    Label,
    Module,
    Negated,
    Operand,
    Register,
    Registers,
    Scope,
    Statement,
    Symbol,
    Targets,
    Variable,
    Vector,
)
from warpbook_labs.lab.entry_names import NoSuchKernel, entry_named

#: what kernels call of the driver, and the machine does itself
DRIVER_FUNCTIONS = frozenset({"vprintf", "__assertfail"})
_MOST_INSTRUCTIONS = 200_000
_MOST_REGISTERS = 50_000


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
    code: list[Instruction] = field(default_factory=list)
    #: positions in `code`, which may be its end
    labels: dict[str, int] = field(default_factory=dict)
    targets: dict[str, tuple[str, ...]] = field(default_factory=dict)
    #: type by name
    registers: dict[str, str] = field(default_factory=dict)
    #: of each block; of `.extern` ones the size is told at launch
    shared: dict[str, Placed] = field(default_factory=dict)
    shared_bytes: int = 0
    #: of each thread: arrays, and what is handed to functions
    local: dict[str, Placed] = field(default_factory=dict)
    local_bytes: int = 0


def link(module: Module, name: str) -> Linked:
    """Put a kernel together.

    Raises:
        PtxError: there is no such kernel, or it can't be run here.
    """
    entries = [
        each.name
        for each in module.functions.values()
        if each.is_entry and each.body is not None
    ]
    try:
        function = module.functions[entry_named(name, entries)]
    except NoSuchKernel as problem:
        raise PtxError(str(problem)) from None
    linked = Linked(name, function.parameters)
    linker = _Linker(module, linked)
    for variable in module.variables.values():
        if variable.space == "shared":
            linker.place(variable, variable.name)
    linker.function(function, {each.name: each.name for each in function.parameters})
    # what is told at launch comes after all else
    for placed in linked.shared.values():
        if placed.variable.is_extern:
            linked.shared[placed.variable.name] = Placed(
                placed.variable, _aligned(linked.shared_bytes, 16)
            )
    return linked


def _aligned(offset: int, alignment: int) -> int:
    return -(-offset // alignment) * alignment


class _Linker:
    def __init__(self, module: Module, linked: Linked) -> None:
        self._module = module
        self._linked = linked
        self._scopes = 0
        self._calling: list[str] = []
        #: of the calls that lead to what is added now, the outer ones first
        self._call_lines: list[int] = []

    def place(self, variable: Variable, name: str) -> None:
        linked = self._linked
        if variable.space == "shared":
            offset = _aligned(linked.shared_bytes, variable.alignment_bytes)
            linked.shared[name] = Placed(variable, offset)
            linked.shared_bytes = offset + variable.size_bytes
        else:
            offset = _aligned(linked.local_bytes, max(variable.alignment_bytes, 8))
            linked.local[name] = Placed(variable, offset)
            linked.local_bytes = offset + variable.size_bytes

    def function(self, function: Function, names: dict[str, str]) -> None:
        """Add a function's body.

        Args:
            names: what its parameters and results are called in the linked program.
        """
        if function.name in self._calling:
            raise Unsupported(f"a function that calls itself, {function.name}")
        self._calling.append(function.name)
        end = self._unique(f"{function.name}.end")
        self._scope(function.body or (), names, end)
        self._linked.labels[end] = len(self._linked.code)
        self._calling.pop()

    def _unique(self, name: str) -> str:
        self._scopes += 1
        return f"{name}/{self._scopes}"

    def _scope(
        self, body: tuple[Statement, ...], outer: dict[str, str], end: str
    ) -> None:
        self._scopes += 1
        names = dict(outer)
        for statement in body:
            self._declare(statement, names)
        for statement in body:
            if isinstance(statement, Scope):
                self._scope(statement.body, names, end)
            elif isinstance(statement, Label):
                self._linked.labels[names[statement.name]] = len(self._linked.code)
            elif isinstance(statement, Call):
                self._call(statement, names)
            elif isinstance(statement, Instruction):
                self._instruction(statement, names, end)

    def _declare(self, statement: Statement, names: dict[str, str]) -> None:
        tag = f"/{self._scopes}"
        if isinstance(statement, Registers):
            declared = [statement.prefix]
            if statement.count is not None:
                declared = [f"{statement.prefix}{n}" for n in range(statement.count)]
            for name in declared:
                names[name] = name + tag
                self._linked.registers[name + tag] = statement.type
            if len(self._linked.registers) > _MOST_REGISTERS:
                raise TooLarge("The kernel has too many registers for this machine.")
        elif isinstance(statement, Variable):
            names[statement.name] = statement.name + tag
            self.place(statement, statement.name + tag)
        elif isinstance(statement, Label):
            names[statement.name] = statement.name + tag
        elif isinstance(statement, Targets):
            names[statement.name] = statement.name + tag
            self._linked.targets[statement.name + tag] = tuple(
                each + tag for each in statement.labels
            )

    def _call(self, call: Call, names: dict[str, str]) -> None:
        if call.function in DRIVER_FUNCTIONS:
            handed = (*call.arguments, *call.results)
            operands = tuple(Symbol(names.get(each, each)) for each in handed)
            self._append(
                Instruction("call", (call.function,), operands, None, call.line)
            )
            return
        function = self._module.functions.get(call.function)
        if function is None or function.body is None:
            raise Unsupported(f"a call of {call.function}", call.line)
        own = (*function.parameters, *function.results)
        given = (*call.arguments, *call.results)
        if len(own) != len(given):
            raise NotPtx(f"A call of {call.function} has another number of arguments.")
        bound = {one.name: names[other] for one, other in zip(own, given, strict=True)}
        self._call_lines += [call.line] if call.line is not None else []
        self.function(function, bound)
        if call.line is not None:
            self._call_lines.pop()

    def _instruction(
        self, instruction: Instruction, names: dict[str, str], end: str
    ) -> None:
        if instruction.name == "ret" and len(self._calling) > 1:
            instruction = dataclasses.replace(
                instruction, name="bra", modifiers=(), operands=(Symbol(end),)
            )
            self._append(self._renamed(instruction, {**names, end: end}))
            return
        self._append(self._renamed(instruction, names))

    def _append(self, instruction: Instruction) -> None:
        if self._call_lines:
            called_on = (*instruction.called_on, *reversed(self._call_lines))
            instruction = dataclasses.replace(instruction, called_on=called_on)
        self._linked.code.append(instruction)
        if len(self._linked.code) > _MOST_INSTRUCTIONS:
            raise TooLarge(
                "The kernel with all that it calls has over "
                f"{_MOST_INSTRUCTIONS:,} instructions: too many for this machine."
            )

    def _renamed(self, instruction: Instruction, names: dict[str, str]) -> Instruction:
        def rename(operand: Operand) -> Operand:
            if isinstance(operand, Register):
                return Register(names.get(operand.name, operand.name))
            if isinstance(operand, Symbol):
                name = names.get(operand.name, operand.name)
                # only here is known whether a name without "%" is a register's
                if name in self._linked.registers:
                    return Register(name)
                return Symbol(name, operand.offset)
            if isinstance(operand, Address):
                base = rename(operand.base)
                if not isinstance(base, Register | Symbol | Immediate):
                    raise NotPtx(f"An address in {instruction.text} is invalid.")
                return Address(base, operand.offset)
            if isinstance(operand, Vector):
                return Vector(tuple(map(rename, operand.parts)))
            if isinstance(operand, Negated):
                name = operand.register.name
                return Negated(Register(names.get(name, name)))
            return operand

        guard = instruction.guard
        renamed_guard = None if guard is None else rename(guard)
        if not isinstance(renamed_guard, Register | Negated | None):
            raise NotPtx(f"The condition of {instruction.text} is invalid.")
        return dataclasses.replace(
            instruction,
            operands=tuple(map(rename, instruction.operands)),
            guard=renamed_guard,
        )
