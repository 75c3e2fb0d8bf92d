"""A chain of operators in a cell's source, and the same code as a compiled function."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple
from zlib import crc32

from warpbook_profiler.advice.code.cell_code import (
    SIMPLE,
    Block,
    Call,
    CellCode,
    blocks,
    bound_names,
)
from warpbook_profiler.advice.code.source_edit import SourceEdit
from warpbook_profiler.advice.code.torch_code import MODULES, Step, opaque_calls, steps

#: they go back through what was called, or are the optimizer's
_AFTER = frozenset("backward grad step zero_grad".split())
#: nothing in it is part of a chain
_BARRIER = frozenset({""})


class FusedCode(NamedTuple):
    """Where a chain is in a source, and what to write in its place."""

    line: int
    #: the whole source then
    code: str


class _Placed(NamedTuple):
    step: Step
    #: among the statements of its block
    statement: int
    in_function: bool


@dataclass(frozen=True)
class _Place:
    """The statements of a chain, in one block, and its expressions."""

    block: Block
    first: int
    last: int
    nodes: tuple[ast.expr, ...]

    @property
    def statements(self) -> list[ast.stmt]:
        return self.block.statements[self.first : self.last + 1]


def fused_code(
    code: CellCode, chain: Sequence[str], line: int | None, decorator: str
) -> FusedCode | None:
    """Find a chain in a source and write it as a function.

    Args:
        chain: The operators by their names in a trace.
        line: That of the first operator; None where lines are not known.
        decorator: What compiles a function, "torch.compile".

    Returns:
        None unless there is one place that it can be, and the function gives what the
        cell computes.
    """
    place = _place(code, [_base(name) for name in chain], line)
    if place is None:
        return _model(code, chain, decorator) or _all(code, len(chain), decorator)
    text = _written(code, place, decorator)
    return FusedCode(place.statements[0].lineno, text) if text else None


def values_read(code: CellCode, chain: Sequence[str], line: int | None) -> int | None:
    """Count the values from elsewhere that a chain reads; see `fused_code`.

    Returns:
        None where it is not known which code the chain is.
    """
    place = _place(code, [_base(name) for name in chain], line)
    if place is None:
        return None
    alone = place.first == place.last
    nodes = [_holding(place)] if alone else place.statements
    return len(taken_names(code.tree, nodes))


def _model(code: CellCode, chain: Sequence[str], decorator: str) -> FusedCode | None:
    """Compile what is called, where a chain can be in nothing else."""
    call = code.model_call()
    opaque = [one for one in opaque_calls(code.tree) if not _is_after(one)]
    if call is None or call.node not in opaque:
        return None
    if any(ast.unparse(one.func) != call.name for one in opaque):
        return None
    own = [
        step
        for block in blocks(code.tree)
        for statement in block.statements
        for step in _of_statement(statement)
        if step.node not in opaque and step.names != _BARRIER and not step.is_optional
    ]
    parts = set(map(_base, chain))
    if any(step.names & parts and not _is_after(step.node) for step in own):
        return None
    text = compiled_model(code, call, f"{decorator}({call.name})")
    return FusedCode(call.line, text) if text else None


def _is_after(node: ast.expr) -> bool:
    function = node.func if isinstance(node, ast.Call) else None
    return isinstance(function, ast.Attribute) and function.attr in _AFTER


def _all(code: CellCode, least: int, decorator: str) -> FusedCode | None:
    """Compile all statements that compute, with so many operators or more."""
    found = [
        _Place(block, numbers[0], numbers[-1], ())
        for block in blocks(code.tree)
        if (numbers := list(_computing(block)))
    ]
    if len(found) != 1 or opaque_calls(code.tree) or found[0].block.function:
        return None
    (place,) = found
    found_steps = [step for one in place.statements for step in _of_statement(one)]
    is_known = not any(step.is_opaque or step.names == _BARRIER for step in found_steps)
    if not is_known or sum(not step.is_optional for step in found_steps) < least:
        return None
    text = _of_statements(code, place, decorator)
    return FusedCode(place.statements[0].lineno, text) if text else None


def _computing(block: Block) -> Iterator[int]:
    for number, statement in enumerate(block.statements):
        value = getattr(statement, "value", None)
        if isinstance(statement, SIMPLE) and isinstance(value, ast.expr):
            if any(not step.is_optional for step in steps(value)):
                yield number


def compiled_model(code: CellCode, call: Call, made: str) -> str:
    """Write that a model which the cell has from elsewhere is called as another one."""
    if call.name in bound_names(code.tree):
        return ""
    edit = SourceEdit(code)
    edit.module(made.split(".")[0])
    name = edit.free_name(f"{call.name}_compiled")
    edit.at_start(f"{name} = {made}")
    for other in code.calls(call.name):
        if isinstance(other.node.func, ast.Name):
            edit.replace(other.node.func, name)
    return edit.source()


def _base(name: str) -> str:
    return name.removeprefix("aten::").rstrip("_")


def _place(code: CellCode, chain: list[str], line: int | None) -> _Place | None:
    places = [place for block in blocks(code.tree) for place in _places(block, chain)]
    if line is not None:
        places = [place for place in places if _has_line(place, line)]
    elif opaque_calls(code.tree):
        # the chain may be in what is called there
        return None
    # a function is compiled whole, wherever in it the chain is
    functions = {place.block.function for place in places}
    is_sure = len(places) == 1 or (len(functions) == 1 and None not in functions)
    return places[0] if is_sure else None


def _has_line(place: _Place, line: int) -> bool:
    last = place.statements[-1]
    return place.statements[0].lineno <= line <= (last.end_lineno or last.lineno)


def _places(block: Block, chain: list[str]) -> Iterator[_Place]:
    placed = [
        _Placed(step, number, block.function is not None)
        for number, statement in enumerate(block.statements)
        for step in _of_statement(statement)
    ]
    for begin in range(len(placed)):
        matched = _matched(placed[begin:], chain)
        if matched:
            numbers = [part.statement for part in matched]
            inside = (min(numbers), max(numbers))
            steps_inside = [
                part.step for part in placed if inside[0] <= part.statement <= inside[1]
            ]
            if not any(step.is_opaque for step in steps_inside):
                nodes = tuple(part.step.node for part in matched)
                yield _Place(block, *inside, nodes)


def _of_statement(statement: ast.stmt) -> Iterator[Step]:
    value = getattr(statement, "value", None)
    if not isinstance(statement, SIMPLE):
        yield Step(_BARRIER, ast.Constant(None))
    elif isinstance(value, ast.expr):
        yield from steps(value)


def _matched(placed: list[_Placed], chain: list[str]) -> list[_Placed]:
    """Give the steps of a chain that begins with the first one; none if it does not."""
    matched: list[_Placed] = []
    for part in placed:
        if len(matched) == len(chain):
            break
        if chain[len(matched)] in part.step.names:
            matched.append(part)
        elif not matched or not (part.step.is_optional or _may_be_number(part)):
            return []
    return matched if len(matched) == len(chain) else []


def _may_be_number(part: _Placed) -> bool:
    """Tell whether a step is arithmetic of what a function may be given as numbers."""
    is_plain = isinstance(part.step.node, ast.BinOp | ast.UnaryOp)
    walked = ast.walk(part.step.node)
    return is_plain and part.in_function and not any(map(_computes, walked))


def _computes(node: ast.AST) -> bool:
    return isinstance(node, ast.Call | ast.Subscript | ast.Attribute)


def _written(code: CellCode, place: _Place, decorator: str) -> str:
    function = place.block.function
    if function is not None:
        is_plain = isinstance(function, ast.FunctionDef) and not any(
            isinstance(node, ast.Yield | ast.YieldFrom) for node in ast.walk(function)
        )
        if not is_plain or function.decorator_list:
            return ""
        edit = SourceEdit(code)
        edit.module(decorator.split(".")[0])
        edit.before(function, f"@{decorator}")
        return edit.source()
    if place.first < place.last:
        return _of_statements(code, place, decorator)
    return as_function(code, _holding(place), decorator, "fused")


def _holding(place: _Place) -> ast.expr:
    """Return the innermost expression of a statement that holds a chain."""
    wanted = set(place.nodes)
    holding = [
        node
        for node in ast.walk(place.statements[0])
        if isinstance(node, ast.expr) and wanted <= set(ast.walk(node))
    ]
    # who is walked to last is innermost
    return holding[-1]


def as_function(code: CellCode, expression: ast.expr, decorator: str, name: str) -> str:
    """Write an expression as a compiled function, and a call of it in its place.

    Returns:
        Nothing where the function would take no values.
    """
    arguments = ", ".join(taken_names(code.tree, [expression]))
    if not arguments:
        return ""
    edit = SourceEdit(code)
    edit.module(decorator.split(".")[0])
    lines = [f"    return {edit.text(expression)}"]
    name = compiled_once(edit, name, arguments, lines, decorator)
    edit.replace(expression, f"{name}({arguments})")
    return edit.source()


def compiled_once(
    edit: SourceEdit,
    name: str,
    parameters: str,
    body: list[str],
    decorator: str,
    helpers: Sequence[str] = (),
) -> str:
    """Write a function that is compiled once, however often the cell runs.

    Args:
        edit: of the cell.
        name: what the function's name begins with.
        parameters: as they are written between parentheses.
        body: lines with their indent.
        decorator: what compiles.
        helpers: lines of functions that it alone knows.

    Returns:
        its name, which no other body has.
    """
    lines = "\n".join([f"({parameters}):", *body])
    mark = crc32("\n".join([*helpers, lines]).encode()) & 0xFFFF
    name = edit.free_name(f"{name}_{mark:04x}")
    text = [f"@{decorator}", *f"def {name}{lines}".splitlines()]
    if helpers:
        inside = [f"    {line}" for line in [*helpers, *text, f"return {name}"]]
        text = [f"def {name}():", *inside, f"{name} = {name}()"]
    head = f'if "{name}" not in globals():'
    edit.at_start("\n".join([head, *(f"    {line}" for line in text)]))
    return name


def _of_statements(code: CellCode, place: _Place, decorator: str) -> str:
    """Write statements that set names one after the other as a function."""
    targets: list[str] = []
    for statement in place.statements:
        match statement:
            case ast.Assign(targets=[ast.Name(id=target)]):
                targets.append(target)
            case _:
                return ""
    parameters = ", ".join(taken_names(code.tree, place.statements))
    # whoever reads the cell's names later finds all of them
    results = ", ".join(dict.fromkeys(targets))
    if not parameters:
        return ""
    edit = SourceEdit(code)
    edit.module(decorator.split(".")[0])
    lines = []
    for statement, target in zip(place.statements, targets, strict=True):
        if isinstance(statement, ast.Assign):
            lines.append(f"    {target} = {edit.text(statement.value)}")
    lines.append(f"    return {results}")
    name = compiled_once(edit, "fused", parameters, lines, decorator)
    first, *others = place.statements
    edit.replace(first, f"{results} = {name}({parameters})")
    for statement in others:
        edit.delete(statement)
    return edit.source()


def taken_names(tree: ast.Module, nodes: Sequence[ast.AST]) -> list[str]:
    """Give the values that code takes from outside, in the order of the source."""
    imported = {
        (alias.asname or alias.name).split(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }
    known = MODULES | imported | set(dir(builtins))
    parameters: dict[str, None] = {}
    stored: set[str] = set()
    for node in nodes:
        names = [part for part in ast.walk(node) if isinstance(part, ast.Name)]
        names.sort(key=lambda part: (part.lineno, part.col_offset))
        for part in names:
            is_read = isinstance(part.ctx, ast.Load)
            if is_read and part.id not in stored and part.id not in known:
                parameters[part.id] = None
        stored |= {part.id for part in names if isinstance(part.ctx, ast.Store)}
    return list(parameters)
