"""Steps of a recurrent cell in a loop, as one call over all of the loop's rows.

What turns do with an output stays a loop, over the outputs. Which kind of cell it is,
and whether it has hooks, is seen when the edit runs.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from warpbook_profiler.advice.code.cell_code import (
    CellCode,
    NameOrder,
    names_in,
    stored_names,
)
from warpbook_profiler.advice.code.source_edit import SourceEdit
from warpbook_profiler.advice.rewriting.turns import loaded, whole_loops

#: cuDNN rounds to TF32 only where the cell's own products do
_ALL_STEPS = '''\
def {name}(cell, rows, state):
    """Step a recurrent cell through rows: all its outputs, and its state at the end."""
    nn, rows = {torch}.nn, [*rows]
    relu = getattr(cell, "nonlinearity", "tanh") == "relu"
    kinds = {{nn.LSTMCell: {torch}.lstm, nn.GRUCell: {torch}.gru}}
    kinds[nn.RNNCell] = {torch}.rnn_relu if relu else {torch}.rnn_tanh
    function, is_pair = kinds[type(cell)], type(cell) is nn.LSTMCell
    if not rows or rows[0].dim() != 2 or cell._forward_hooks or cell._forward_pre_hooks:
        raise TypeError("no cell whose steps are one call")
    if state is None:
        state = rows[0].new_zeros(len(rows[0]), cell.hidden_size)
        state = (state, state) if is_pair else state
    begin = [one[None] for one in state] if is_pair else state[None]
    tf32 = {torch}.get_float32_matmul_precision() != "highest"
    with {torch}.backends.cudnn.flags(enabled=True, allow_tf32=tf32):
        outputs, *last = function(
            {torch}.stack(rows), begin, [*cell.parameters()], cell.bias,
            1, 0.0, cell.training, False, False,
        )
    outputs = outputs.unbind()
    # the state at the end is the last output
    return outputs, (outputs[-1], last[1][0]) if is_pair else outputs[-1]

'''
#: cells in one loop
_MOST_CELLS = 8


class _Step(NamedTuple):
    place: int
    cell: ast.expr
    row: ast.expr
    #: one name, or those of a tuple
    state: list[str]
    is_tuple: bool


def whole_cells(code: CellCode) -> Iterator[str]:
    """Write the cell with all steps of its recurrent cells before what uses them."""
    text, name = "", SourceEdit(code).free_name("all_steps")
    for _ in range(_MOST_CELLS):
        loops = (one for one in whole_loops(code.tree) if isinstance(one, ast.For))
        more = next(filter(None, (_written(code, one, name) for one in loops)), "")
        if not more:
            break
        text, code = more, CellCode(more)
    if text:
        edit = SourceEdit(CellCode(text))
        edit.at_start(_ALL_STEPS.format(name=name, torch=edit.torch))
        yield edit.source()


def _written(code: CellCode, loop: ast.For, function: str) -> str:
    found = (_step(n, one) for n, one in enumerate(loop.body))
    step = next((one for one in found if one is not None), None)
    if step is None:
        return ""
    before, after = loop.body[: step.place], loop.body[step.place + 1 :]
    first, rest = ast.Module(before, []), ast.Module(after, [])
    own, given = stored_names(first), stored_names(loop.target)
    stored = stored_names(loop)
    # rows come of no output, nor of anything that a turn leaves to the next one
    needed = NameOrder(first).read_first | (loaded(step.row) - own)
    if needed & (stored - given) or names_in(step.cell) & stored:
        return ""
    others = {*step.state[1:]} & loaded(rest)
    if others or stored_names(rest) & (own | {*step.state}):
        return ""
    edit = SourceEdit(code)
    edit.know([function])
    every, rows = edit.free_name("turns"), edit.free_name("rows")
    outputs, output = edit.free_name("outputs"), edit.free_name("output")
    last, kept = edit.free_name("last"), sorted(own & loaded(rest))
    state = ", ".join(step.state)
    state = f"({state})" if step.is_tuple else state
    target = ast.unparse(loop.target)
    row = ", ".join([ast.unparse(step.row), *kept])
    cell, given_rows = ast.unparse(step.cell), f"[one[0] for one in {rows}]"
    called = f"{function}({cell}, {given_rows}, {state})"
    edit.before(
        loop,
        "\n".join(
            [
                f"{every}, {rows} = [*{ast.unparse(loop.iter)}], []",
                f"for {target} in {every}:",
                *(
                    f"    {it}"
                    for one in before
                    for it in ast.unparse(one).splitlines()
                ),
                f"    {rows}.append(({row},))",
                f"{outputs}, {last} = {called}",
            ]
        ),
    )
    made = ", ".join(["_", *kept])
    edit.replace(loop.target, f"{_one(loop.target)}, {output}, ({made},)")
    edit.replace(loop.iter, f"zip({every}, {outputs}, {rows})")
    for one in before:
        edit.delete(one)
    value = output
    if not step.is_tuple:
        value = f"({output},) if isinstance({last}, tuple) else {output}"
    edit.replace(loop.body[step.place], f"{step.state[0]} = {value}")
    edit.after(loop, f"{state} = {last}")
    return edit.source()


def _one(target: ast.expr) -> str:
    text = ast.unparse(target)
    return f"({text})" if isinstance(target, ast.Tuple) and text[0] != "(" else text


def _step(place: int, statement: ast.stmt) -> _Step | None:
    """Read `state = cell(row, state)`, of one name or two."""
    match statement:
        case ast.Assign(
            targets=[target], value=ast.Call(func=cell, args=args, keywords=keywords)
        ):
            pass
        case _:
            return None
    named = {one.arg: one.value for one in keywords}
    given = dict(zip(("input", "hx"), args, strict=False)) | named
    if len(args) + len(keywords) != 2 or given.keys() != {"input", "hx"}:
        return None
    parts = target.elts if isinstance(target, ast.Tuple) else [target]
    state = [part.id for part in parts if isinstance(part, ast.Name)]
    is_same = ast.unparse(target).strip("()") == ast.unparse(given["hx"]).strip("()")
    if not is_same or len(state) != len(parts):
        return None
    return _Step(place, cell, given["input"], state, isinstance(target, ast.Tuple))
