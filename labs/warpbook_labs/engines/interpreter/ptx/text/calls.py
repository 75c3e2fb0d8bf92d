"""Which functions of a module call which, by their names and through pointers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from warpbook_labs.engines.interpreter.ptx.text.errors import Unsupported
from warpbook_labs.engines.interpreter.ptx.text.program import (
    Address,
    Call,
    Function,
    Instruction,
    Module,
    Prototype,
    Scope,
    Statement,
    Symbol,
    Variable,
)

#: functions have addresses where no memory is, and so many bytes apart
_FIRST_ADDRESS = 0x4_0000_0000
_BYTES_APART = 16
#: of what is handed to a function, in its frame
_ALIGNMENT_BYTES = 16


def function_addresses(module: Module) -> dict[str, int]:
    return {
        name: _FIRST_ADDRESS + number * _BYTES_APART
        for number, name in enumerate(module.functions)
    }


def at_first(variable: Variable, functions: Mapping[str, int]) -> bytes:
    """Give what a variable holds at first, with the addresses of functions.

    Raises:
        Unsupported: it holds the address of something else.
    """
    held = bytearray(variable.initial.ljust(variable.size_bytes, b"\0"))
    for at, name in variable.addresses:
        if name not in functions:
            raise Unsupported(f"the address of {name} in a variable")
        held[at : at + 8] = functions[name].to_bytes(8, "little")
    return bytes(held)


def handed(function: Function | Prototype) -> tuple[Variable, ...]:
    """Give a function's parameters, then its results."""
    return (*function.parameters, *function.results)


def layout(variables: Iterable[Variable]) -> tuple[list[int], int]:
    """Give where in a frame each of what is handed over lies, and their end."""
    places, end = [], 0
    for variable in variables:
        places.append(end)
        end += -(-variable.size_bytes // _ALIGNMENT_BYTES) * _ALIGNMENT_BYTES
    return places, end


class Calls:
    """The calls of a module."""

    def __init__(self, module: Module) -> None:
        self._module = module
        self._pointed = _pointed(module)
        self._called: dict[str, frozenset[str]] = {}

    def targets(self, call: Call, prototypes: dict[str, Prototype]) -> list[Function]:
        """Give the functions that a call may reach.

        Raises:
            Unsupported: it calls what is not in the module, or can't be told.
        """
        if not call.prototype:
            function = self._module.functions.get(call.function)
            if function is None or function.body is None:
                raise Unsupported(f"a call of {call.function}", call.line)
            return [function]
        prototype = prototypes.get(call.prototype)
        if prototype is None:
            raise Unsupported("a call through a list of functions", call.line)
        return [
            function
            for name in self._pointed
            if (function := self._module.functions[name]).body is not None
            and not function.is_entry
            and _fits(function, prototype)
        ]

    def calls_itself(self, function: Function) -> bool:
        seen: set[str] = set()
        pending = [function.name]
        while pending:
            for name in self._callees(pending.pop()):
                if name == function.name:
                    return True
                if name not in seen:
                    seen.add(name)
                    pending.append(name)
        return False

    def _callees(self, name: str) -> frozenset[str]:
        if name not in self._called:
            function = self._module.functions.get(name)
            body = () if function is None else function.body or ()
            statements = list(_all(body))
            prototypes = {
                statement.name: statement
                for statement in statements
                if isinstance(statement, Prototype)
            }
            self._called[name] = frozenset(
                target
                for statement in statements
                if isinstance(statement, Call)
                for target in self._names(statement, prototypes)
            )
        return self._called[name]

    def _names(self, call: Call, prototypes: dict[str, Prototype]) -> list[str]:
        try:
            return [target.name for target in self.targets(call, prototypes)]
        except Unsupported:
            # it is told of where it is put in
            return []


def _fits(function: Function, prototype: Prototype) -> bool:
    return all(
        [variable.size_bytes for variable in one]
        == [variable.size_bytes for variable in other]
        for one, other in (
            (function.parameters, prototype.parameters),
            (function.results, prototype.results),
        )
    )


def _all(body: Iterable[Statement]) -> Iterator[Statement]:
    for statement in body:
        yield statement
        if isinstance(statement, Scope):
            yield from _all(statement.body)


def _pointed(module: Module) -> list[str]:
    """Name the functions whose addresses are taken, in their order."""
    names = {
        name for variable in module.variables.values() for _, name in variable.addresses
    }
    for function in module.functions.values():
        for statement in _all(function.body or ()):
            if isinstance(statement, Instruction):
                for operand in statement.operands:
                    base = operand.base if isinstance(operand, Address) else operand
                    if isinstance(base, Symbol):
                        names.add(base.name)
    return [name for name in module.functions if name in names]
