"""Lists of Python that turns make tensors of, as parts of one tensor made before."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from warpbook_profiler.advice.code.cell_code import (
    SIMPLE,
    CellCode,
    last_name,
    stored_names,
)
from warpbook_profiler.advice.code.source_edit import SourceEdit
from warpbook_profiler.advice.code.value_flow import ValueFlow
from warpbook_profiler.advice.rewriting.turns import LAZY, filled, loaded, whole_loops

#: of torch: what makes a tensor of a list
MAKERS = frozenset("tensor as_tensor asarray LongTensor FloatTensor".split())
#: methods that do the same to a part of a tensor as to the whole of it
_MOVES = frozenset("to cuda long int float double half bfloat16 bool".split())
_MADE = (ast.ListComp, ast.GeneratorExp, ast.SetComp, ast.DictComp)


class _Turns(NamedTuple):
    """A loop, or a comprehension's only clause."""

    target: ast.expr
    iter: ast.expr
    #: it is, or is a part of
    statement: ast.stmt
    #: names that turns set or fill
    changed: set[str]


def lists_at_once(code: CellCode) -> Iterator[str]:
    """Write one tensor of the lists of all turns; each takes its part, or a copy."""
    flow = ValueFlow(code)
    loops = set(whole_loops(code.tree))
    calls = [one for one in ast.walk(code.tree) if isinstance(one, ast.Call)]
    for call in calls:
        turns = _turns(flow, call, loops) if last_name(call.func) in MAKERS else None
        if turns is not None and call.args:
            # rows of one tensor share its memory
            for own in ("", ".clone()"):
                if text := _written(code, flow, call, turns, own):
                    yield text


def _turns(
    flow: ValueFlow, call: ast.Call, loops: set[ast.For | ast.While]
) -> _Turns | None:
    """Return the innermost turns around a call, if each comes to it."""
    for above in flow.around(call):
        if isinstance(above, ast.For):
            changed = stored_names(ast.Module(above.body, [])) | filled(above.body)
            turns = _Turns(above.target, above.iter, above, changed)
            return turns if above in loops else None
        if isinstance(above, _MADE):
            clause, *others = above.generators
            statement = flow.statement(above)
            outer = [one for one in flow.around(above) if isinstance(one, LAZY)]
            is_sure = isinstance(statement, SIMPLE) and not outer
            if others or clause.ifs or not is_sure or statement is None:
                return None
            return _Turns(clause.target, clause.iter, statement, set())
        if isinstance(above, (*LAZY, ast.If, ast.While, ast.Try, ast.FunctionDef)):
            return None
    return None


def _written(
    code: CellCode, flow: ValueFlow, call: ast.Call, turns: _Turns, own: str
) -> str:
    # a name that a turn sets once stands for its value
    given, targets = flow.value(call.args[0]), stored_names(turns.target)
    whole: ast.expr = call
    while True:
        method = flow.parent(whole)
        moved = flow.parent(method) if isinstance(method, ast.Attribute) else None
        match moved:
            case ast.Call(func=ast.Attribute(attr=name)) if name in _MOVES:
                whole = moved
            case _:
                break
    rest = {one for part in (*call.args[1:], *call.keywords) for one in loaded(part)}
    others = rest | (loaded(whole) - loaded(call))
    # names of a comprehension in it are its own
    names = others | (loaded(given) - stored_names(given))
    is_known = not (names & turns.changed or others & targets)
    if not is_known or not loaded(given) & targets:
        return ""
    edit = SourceEdit(code)
    every, lists = edit.free_name("turns"), edit.free_name("lists")
    tensors, one, row = map(edit.free_name, ("tensors", "one", "row"))
    target = ast.unparse(turns.target)
    flat = f"[{row} for {one} in {lists} for {row} in {one}]"
    text = ast.unparse(given)
    listed = every if text == target else f"[{text} for {target} in {every}]"
    arguments = [flat, *map(ast.unparse, (*call.args[1:], *call.keywords))]
    made = f"{ast.unparse(call.func)}({', '.join(arguments)})"
    made += ast.unparse(whole).removeprefix(ast.unparse(call))
    edit.before(
        turns.statement,
        f"{every} = list({edit.text(turns.iter)})\n"
        f"{lists} = {listed}\n"
        f"{tensors} = {made}.split([len({one}) for {one} in {lists}])",
    )
    edit.replace(turns.target, f"{target}, {row}")
    edit.replace(turns.iter, f"zip({every}, {tensors})")
    edit.replace(whole, f"{row}{own}")
    return edit.source()
