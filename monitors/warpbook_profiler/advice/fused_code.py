"""A chain of operators in a cell's source, and the same code as a compiled function."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from warpbook_profiler.advice.cell_code import SIMPLE, Block, CellCode, blocks, replaced
from warpbook_profiler.advice.torch_code import MODULES, Step, opaque_calls, steps

#: a longer sketch helps nobody
_MOST_CHARACTERS = 600
#: nothing in it is part of a chain
_BARRIER = frozenset({""})


class FusedCode(NamedTuple):
    """Where a chain is in a source, and what to write in its place."""

    line: int
    sketch: str


class _Placed(NamedTuple):
    step: Step
    #: among the statements of its block
    statement: int


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
        None unless there is one place that it can be, and the sketch keeps what the
        cell computes.
    """
    place = _place(code, [_base(name) for name in chain], line)
    if place is None:
        return _model(code, decorator)
    sketch = _written(code.tree, place, decorator)
    if not sketch or len(sketch) > _MOST_CHARACTERS:
        return None
    return FusedCode(place.statements[0].lineno, sketch)


def _model(code: CellCode, decorator: str) -> FusedCode | None:
    """Compile what is called, where all work is in that."""
    call, opaque = code.model_call(), opaque_calls(code.tree)
    if call is None or opaque != [call.node]:
        return None
    own = [
        step
        for block in blocks(code.tree)
        for statement in block.statements
        for step in _of_statement(statement)
        if step.node is not call.node and step.names != _BARRIER
    ]
    if not all(step.is_optional for step in own):
        return None
    return FusedCode(call.line, f"{call.name} = {decorator}({call.name})")


def _base(name: str) -> str:
    return name.removeprefix("aten::").rstrip("_")


def _place(code: CellCode, chain: list[str], line: int | None) -> _Place | None:
    places = [place for block in blocks(code.tree) for place in _places(block, chain)]
    if line is not None:
        places = [place for place in places if _has_line(place, line)]
    elif opaque_calls(code.tree):
        # the chain may be in what is called there
        return None
    return places[0] if len(places) == 1 else None


def _has_line(place: _Place, line: int) -> bool:
    last = place.statements[-1]
    return place.statements[0].lineno <= line <= (last.end_lineno or last.lineno)


def _places(block: Block, chain: list[str]) -> Iterator[_Place]:
    placed = [
        _Placed(step, number)
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
        elif not matched or not part.step.is_optional:
            return []
    return matched if len(matched) == len(chain) else []


def _written(tree: ast.Module, place: _Place, decorator: str) -> str:
    function = place.block.function
    if function is not None:
        is_plain = isinstance(function, ast.FunctionDef) and not any(
            isinstance(node, ast.Yield | ast.YieldFrom) for node in ast.walk(function)
        )
        if not is_plain or function.decorator_list:
            return ""
        head = f"def {function.name}({ast.unparse(function.args)}):"
        return f"@{decorator}\n{head}\n    ...  # unchanged"
    if place.first < place.last:
        return _of_statements(tree, place, decorator, free_name(tree, "fused"))
    wanted = set(place.nodes)
    holding = [
        node
        for node in ast.walk(place.statements[0])
        if isinstance(node, ast.expr) and wanted <= set(ast.walk(node))
    ]
    # who is walked to last is innermost
    return as_function(tree, place.statements[0], holding[-1], decorator, "fused")


def as_function(
    tree: ast.Module,
    statement: ast.stmt,
    expression: ast.expr,
    decorator: str,
    name: str,
) -> str:
    """Write an expression of a statement as a compiled function, and a call of it.

    Returns:
        Nothing where the function would take no values.
    """
    arguments = ", ".join(_parameters(tree, [expression]))
    if not arguments:
        return ""
    name = free_name(tree, name)
    changed = replaced(statement, expression, f"{name}({arguments})")
    return (
        f"@{decorator}\ndef {name}({arguments}):\n"
        f"    return {ast.unparse(expression)}\n\n{changed}"
    )


def free_name(tree: ast.Module, name: str) -> str:
    """Give a name for a function that a source does not use."""
    taken = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    return name if name not in taken else f"{name}_compiled"


def _of_statements(tree: ast.Module, place: _Place, decorator: str, name: str) -> str:
    """Write statements that set names one after the other as a function."""
    targets: list[str] = []
    for statement in place.statements:
        match statement:
            case ast.Assign(targets=[ast.Name(id=target)]):
                targets.append(target)
            case _:
                return ""
    parameters = _parameters(tree, place.statements)
    inside = {node for statement in place.statements for node in ast.walk(statement)}
    read = {
        node.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Name)
        and isinstance(node.ctx, ast.Load)
        and node not in inside
    }
    result = targets[-1]
    between = [target for target in dict.fromkeys(targets[:-1]) if target != result]
    kept = [target for target in between if target in read or target in parameters]
    hidden = [target for target in between if target not in kept]
    *before, last = place.statements
    arguments = ", ".join(parameters)
    lines = [f"@{decorator}", f"def {name}({arguments}):"]
    lines += [f"    {ast.unparse(statement)}" for statement in before]
    value = ast.unparse(last.value) if isinstance(last, ast.Assign) else ""
    lines += [f"    return {', '.join([*kept, value])}", ""]
    lines.append(f"{', '.join([*kept, result])} = {name}({arguments})")
    if hidden:
        lines.append(f"# only the function has {' and '.join(hidden)}")
    return "\n".join(lines) if arguments else ""


def _parameters(tree: ast.Module, nodes: Sequence[ast.AST]) -> list[str]:
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
