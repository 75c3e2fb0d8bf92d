"""Models and loops of a cell, each compiled as a whole."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from warpbook_profiler.advice.code.cell_code import CellCode, stored_names
from warpbook_profiler.advice.code.fused_code import (
    compiled_model,
    compiled_once,
    taken_names,
)
from warpbook_profiler.advice.code.read_code import uses
from warpbook_profiler.advice.code.source_edit import SourceEdit
from warpbook_profiler.advice.code.torch_code import opaque_calls, steps
from warpbook_profiler.advice.evidence import Evidence

#: methods that look at the same memory
_VIEWS = frozenset(
    "detach view reshape squeeze unsqueeze flatten transpose permute".split()
)
#: a compiler writes each turn by itself
_MOST_TURNS = 256


def compiled_as_graph(evidence: Evidence) -> str:
    """Write that each call of the cell's model is a graph.

    Returns:
        Nothing where a result outlives the next call, which writes to its memory, or
        where calls wait for a backward pass that never comes, as no graph then does.
    """
    code, operators = evidence.code, evidence.operators
    call = code.model_call()
    if call is None or (len(operators.recorded) and not operators.are_trained):
        return ""
    calls = [other.node for other in code.calls(call.name)]
    if len(calls) > 1:
        return ""
    results: set[ast.AST] = {*calls}
    names = set()
    for node in ast.walk(code.tree):
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if (
                value in results
            ):
                if uses(value, name):
                    return ""
                names.add(name)
    results |= {
        node
        for node in ast.walk(code.tree)
        if isinstance(node, ast.Name)
        and isinstance(node.ctx, ast.Load)
        and node.id in names
    }
    if any(_seen(part) in results for part in _kept(code.tree)):
        return ""
    return compiled_model(
        code, call, f'torch.compile({call.name}, mode="reduce-overhead")'
    )


def _kept(tree: ast.AST) -> Iterator[ast.expr]:
    """Give what code keeps under another name, or within something else."""
    for node in ast.walk(tree):
        match node:
            case ast.List(elts=parts) | ast.Tuple(elts=parts) | ast.Set(elts=parts):
                yield from parts
            case ast.Dict(values=parts):
                yield from parts
            case ast.IfExp(body=one, orelse=other):
                yield from (one, other)
            case ast.Call(func=ast.Attribute(attr="append" | "add"), args=parts):
                yield from parts
            case ast.ListComp(elt=part) | ast.GeneratorExp(elt=part):
                yield part
            case ast.Lambda(body=part) | ast.Return(value=ast.expr() as part):
                yield part
            case ast.Assign(targets=[target], value=part):
                is_result = isinstance(target, ast.Name) and isinstance(part, ast.Call)
                if not is_result or _seen(part) is not part:
                    yield part


def _seen(part: ast.expr) -> ast.expr:
    """Return the tensor whose memory an expression looks at."""
    while True:
        match part:
            case ast.Subscript(value=inner):
                part = inner
            case ast.Attribute(attr="T" | "mT" | "data", value=inner):
                part = inner
            case ast.Call(func=ast.Attribute(attr=name, value=inner)) if name in _VIEWS:
                part = inner
            case _:
                return part


def fused_loop(code: CellCode, decorator: str) -> str:
    """Write a loop of few turns, in which all work is, as one compiled function."""
    loops = [node for node in ast.walk(code.tree) if isinstance(node, ast.For)]
    if len(loops) != 1 or opaque_calls(code.tree) or loops[0] not in code.tree.body:
        return ""
    (loop,) = loops
    match loop:
        case ast.For(
            target=ast.Name(id=turn),
            iter=ast.Call(func=ast.Name(id="range"), args=[ast.Constant(value=turns)]),
            orelse=[],
        ) if isinstance(turns, int) and turns <= _MOST_TURNS:
            names = stored_names(ast.Module(loop.body, []))
        case _:
            return ""
    read = {
        node.id
        for statement in loop.body
        for node in ast.walk(statement)
        if isinstance(node, ast.Name)
    }
    are_plain = all(
        isinstance(statement, ast.Assign)
        and isinstance(statement.targets[0], ast.Name)
        and not any(step.is_opaque for step in steps(statement.value))
        for statement in loop.body
    )
    if not are_plain or turn in read:
        return ""
    edit = SourceEdit(code)
    edit.module(decorator.split(".")[0])
    parameters = ", ".join(taken_names(code.tree, loop.body))
    results = ", ".join(sorted(names))
    lines = [f"    for {turn} in range({turns}):"]
    lines += [f"        {ast.unparse(statement)}" for statement in loop.body]
    lines.append(f"    return {results}")
    name = compiled_once(edit, "steps", parameters, lines, decorator)
    edit.before(loop, f"{turn} = {turns - 1}")
    edit.replace(loop, f"{results} = {name}({parameters})")
    return edit.source() if parameters else ""
