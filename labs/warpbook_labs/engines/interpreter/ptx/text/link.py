"""Makes one list of instructions of a kernel and all that it calls.

Functions are put in where they are called, with names of their own, so that the
machine needs no call stack for each thread. Only those that may call themselves stand
once, and go back to where they were called; `frames.py` has what that takes. A call
through a pointer is one of those that it may be, chosen by the address.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from warpbook_labs.engines.interpreter.ptx.text.calls import (
    Calls,
    function_addresses,
    handed,
    layout,
)
from warpbook_labs.engines.interpreter.ptx.text.errors import (
    NotPtx,
    PtxError,
    TooLarge,
    Unsupported,
)
from warpbook_labs.engines.interpreter.ptx.text.frames import (
    ADDRESS,
    REGISTERS,
    ROOM,
    STACK,
    STACK_BYTES,
    Frame,
    Plan,
    moved,
    slot_bytes,
)
from warpbook_labs.engines.interpreter.ptx.text.program import (
    Address,
    Call,
    Function,
    Immediate,
    Instruction,
    Label,
    Linked,
    Module,
    Placed,
    Prototype,
    Register,
    Registers,
    Scope,
    Statement,
    Symbol,
    Targets,
    Variable,
)
from warpbook_labs.engines.interpreter.ptx.text.renaming import renamed
from warpbook_labs.lab.entry_names import NoSuchKernel, entry_named

#: what kernels call of the driver, and the machine does itself
DRIVER_FUNCTIONS = frozenset({"vprintf", "__assertfail"})
#: modifies a `call` where a pointer is none of the functions that fit
NO_FUNCTION = "%no_function"
_MOST_INSTRUCTIONS = 200_000
_MOST_REGISTERS = 50_000


def link(module: Module, name: str) -> Linked:
    """Put a kernel together.

    Raises:
        PtxError: there is no such kernel, or it can't be run here.
    """
    entries = [
        entry.name
        for entry in module.functions.values()
        if entry.is_entry and entry.body is not None
    ]
    try:
        function = module.functions[entry_named(name, entries)]
    except NoSuchKernel as problem:
        raise PtxError(str(problem)) from None
    calls, plan = Calls(module), Plan()
    while True:
        linked = Linked(name, function.parameters, function.limits)
        linker = _Linker(module, linked, calls, plan)
        for variable in module.variables.values():
            if variable.space == "shared":
                linker.place(variable, variable.name)
        linker.function(
            function,
            {parameter.name: parameter.name for parameter in function.parameters},
        )
        known, plan = plan, linker.plan()
        if plan == known:
            break
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
    def __init__(
        self, module: Module, linked: Linked, calls: Calls, plan: Plan
    ) -> None:
        self._addresses = function_addresses(module)
        self._linked = linked
        self._all_calls, self._plan = calls, plan
        self._scopes = 0
        #: the kernel's, and of the functions that are added now and have one
        self._frames = [Frame(0)]
        self._all_frames = list(self._frames)
        #: calls of functions from within themselves: where they go on
        self._sites: list[tuple[str, Frame]] = []
        #: by name: where variables are, from where the last frame begins
        self._in_frame: dict[str, int] = {}
        self._prototypes: dict[str, Prototype] = {}
        self._calling: list[str] = []
        #: of the calls that lead to what is added now, the outer ones first
        self._call_lines: list[int] = []

    def place(self, variable: Variable, name: str) -> None:
        linked = self._linked
        if variable.space == "shared":
            offset = _aligned(linked.shared_bytes, variable.alignment_bytes)
            linked.shared[name] = Placed(variable, offset)
            linked.shared_bytes = offset + variable.size_bytes
        elif len(self._frames) > 1:
            alignment = max(variable.alignment_bytes, 8)
            frame = self._frames[-1]
            self._in_frame[name] = frame.place(variable.size_bytes, alignment)
        else:
            offset = _aligned(linked.local_bytes, max(variable.alignment_bytes, 8))
            linked.local[name] = Placed(variable, offset)
            linked.local_bytes = offset + variable.size_bytes

    def function(self, function: Function, names: dict[str, str]) -> None:
        """Add a function's body.

        Args:
            names: what its parameters and results are called in the linked program.
        """
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
        prototypes = {
            statement.name: statement
            for statement in body
            if isinstance(statement, Prototype)
        }
        self._prototypes |= prototypes
        ahead = self._handed_in_frames(body)
        for statement in body:
            if isinstance(statement, Variable) and statement.name in ahead:
                name = f"{statement.name}/{self._scopes}"
                names[statement.name] = name
                self._in_frame[name] = ahead[statement.name]
            else:
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
                label + tag for label in statement.labels
            )

    def _call(self, call: Call, names: dict[str, str]) -> None:
        if call.function in DRIVER_FUNCTIONS:
            operands = tuple(
                Address(STACK, self._in_frame[name])
                if (name := names.get(operand, operand)) in self._in_frame
                else Symbol(name)
                for operand in (*call.arguments, *call.results)
            )
            self._append(
                Instruction("call", (call.function,), operands, None, call.line)
            )
            return
        targets = self._targets(call)
        is_framed = self._is_framed(targets)
        self._call_lines += [call.line] if call.line is not None else []
        if not call.prototype:
            self._invoke(targets[0], call, names, is_framed)
        else:
            self._choose(targets, call, names, is_framed)
        if call.line is not None:
            self._call_lines.pop()

    def _targets(self, call: Call) -> list[Function]:
        if call.function in DRIVER_FUNCTIONS:
            return []
        return self._all_calls.targets(call, self._prototypes)

    def _is_framed(self, targets: Sequence[Function]) -> bool:
        """Tell whether what is called has frames, as one of it may call itself."""
        return any(map(self._all_calls.calls_itself, targets))

    def _handed_in_frames(self, body: tuple[Statement, ...]) -> dict[str, int]:
        """Give where what is handed to functions with frames is, behind this frame."""
        places_of: dict[str, int] = {}
        for call in body:
            if not isinstance(call, Call):
                continue
            targets = self._targets(call)
            if self._is_framed(targets):
                places, end = layout(handed(targets[0]))
                frame = self._frames[-1]
                frame.handed_bytes = max(frame.handed_bytes, end)
                given = (*call.arguments, *call.results)
                behind = self._frame_bytes()
                for name, place in zip(given, places, strict=False):
                    if places_of.setdefault(name, behind + place) != behind + place:
                        raise Unsupported("such a call of a function", call.line)
        return places_of

    def _frame_bytes(self) -> int:
        """Give the size of the frame that is added to now, as it was last time."""
        return self._plan.frame_bytes(self._frames[-1].number)

    def _choose(
        self,
        targets: Sequence[Function],
        call: Call,
        names: dict[str, str],
        is_framed: bool,
    ) -> None:
        """Add a call of each function that a pointer may be, and take one of them."""
        pointer = Register(names.get(call.function, call.function))
        is_other = Register(self._unique("is_other"))
        self._linked.registers[is_other.name] = "pred"
        end, line = self._unique("called"), call.line
        for function in targets:
            after = self._unique("no")
            address = Immediate(self._addresses[function.name])
            compared = (is_other, pointer, address)
            self._append(Instruction("setp", ("ne", "u64"), compared, None, line))
            self._append(Instruction("bra", (), (Symbol(after),), is_other, line))
            self._invoke(function, call, names, is_framed)
            self._append(Instruction("bra", (), (Symbol(end),), None, line))
            self._linked.labels[after] = len(self._linked.code)
        self._append(Instruction("call", (NO_FUNCTION,), (pointer,), None, line))
        self._linked.labels[end] = len(self._linked.code)

    def _invoke(
        self, function: Function, call: Call, names: dict[str, str], is_framed: bool
    ) -> None:
        own, given = handed(function), (*call.arguments, *call.results)
        if len(own) != len(given):
            raise NotPtx(f"A call of {function.name} has another number of arguments.")
        if is_framed:
            self._invoke_in_frame(function, call.line)
            return
        bound = {one.name: names[other] for one, other in zip(own, given, strict=True)}
        self.function(function, bound)

    def _invoke_in_frame(self, function: Function, line: int | None) -> None:
        """Go to a function that stands once, with a frame behind the one of now."""
        linked, size = self._linked, Immediate(self._frame_bytes())
        linked.registers.update(REGISTERS)
        known = next(
            (other for other in self._frames[1:] if other.function == function.name),
            None,
        )
        back = self._unique("back")
        frame = known or self._new_frame(function.name)
        kept = []
        if known is not None:
            for name in self._plan.kept.get(back, ()):
                width = slot_bytes(linked.registers[name])
                kept.append((name, self._frames[-1].place(width, width)))
        for name, offset in kept:
            linked.code += moved(name, linked.registers[name], offset, False)
        linked.code.append(Instruction("add", ("u64",), (STACK, STACK, size)))
        room = Immediate(self._plan.room_bytes(frame.number))
        what = (STACK, room, Symbol(function.name))
        self._append(Instruction("call", (ROOM,), what, None, line))
        number = Immediate(len(frame.labels))
        frame.labels.append(back)
        to = Register(frame.returns_to)
        linked.code.append(Instruction("mov", ("u32",), (to, number)))
        if known is not None:
            self._sites.append((back, frame))
            linked.code.append(Instruction("bra", (), (Symbol(frame.entry),)))
        else:
            self._body_in_frame(function, frame)
        linked.labels[back] = len(linked.code)
        linked.code.append(Instruction("sub", ("u64",), (STACK, STACK, size)))
        for name, offset in kept:
            linked.code += moved(name, linked.registers[name], offset, True)

    def _new_frame(self, name: str) -> Frame:
        entry, returns_to = self._unique(f"{name}.entry"), self._unique("returns_to")
        frame = Frame(len(self._all_frames), name, entry, returns_to)
        self._all_frames.append(frame)
        self._linked.registers[returns_to] = "u32"
        return frame

    def _body_in_frame(self, function: Function, frame: Frame) -> None:
        """Add a function that stands once; it goes on where it was called."""
        linked = self._linked
        frame.first = linked.labels[frame.entry] = len(linked.code)
        places, frame.size_bytes = layout(handed(function))
        bound = {}
        for variable, place in zip(handed(function), places, strict=True):
            name = self._unique(variable.name)
            bound[variable.name] = name
            self._in_frame[name] = place
        self._frames.append(frame)
        self.function(function, bound)
        self._frames.pop()
        labels = self._unique("labels")
        linked.targets[labels] = tuple(frame.labels)
        operands = (Register(frame.returns_to), Symbol(labels))
        linked.code.append(Instruction("brx", ("idx",), operands))
        frame.last = len(linked.code)

    def plan(self) -> Plan:
        """Give what is known now; the kernel has its stack behind all else."""
        linked = self._linked
        if len(self._all_frames) == 1:
            return Plan()
        self._all_frames[0].size_bytes = linked.local_bytes
        linked.local_bytes = _aligned(linked.local_bytes, 16) + STACK_BYTES
        return self._plan.next(self._all_frames, self._sites, linked)

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
        renamed_instruction, offset = renamed(
            instruction, names, self._linked.registers, self._in_frame
        )
        if offset is not None:
            place = (ADDRESS, STACK, Immediate(offset))
            self._linked.code.append(Instruction("add", ("u64",), place))
        return renamed_instruction
