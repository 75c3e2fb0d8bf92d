"""Results that a loop of a cell reads one by one, read after the loop instead."""

from __future__ import annotations

import ast

from warpbook_profiler.advice.code.cell_code import (
    SIMPLE,
    Call,
    CellCode,
    blocks,
    names_in,
    walk,
)
from warpbook_profiler.advice.code.source_edit import SourceEdit
from warpbook_profiler.advice.code.torch_code import is_number
from warpbook_profiler.advice.code.value_flow import ValueFlow
from warpbook_profiler.facts.traffic import only_passes

#: they take all that a generator gives, at once
_TAKES_ALL = frozenset("sum fsum list tuple set sorted max min mean fmean".split())
#: they take a list as it is, once
_PARTS = (ast.Call, ast.BinOp, ast.keyword)


def gathered(code: CellCode, read: Call | None) -> str:
    """Write what a loop's results are added or appended to so that it is read after.

    Returns:
        Nothing where the loop does something else with what it reads, too.
    """
    if read is None or _result(read.node) is None:
        return ""
    edit, loop = SourceEdit(code), loop_around(code, read.node)
    if loop is None:
        return _listed(code, read.node)
    kept = _Kept(code, edit, loop, read.node)
    for statement in walk(loop):
        match statement:
            case ast.AugAssign(target=ast.Name() as target, op=ast.Add(), value=value):
                kept.add(target, value)
            case ast.AugAssign(
                target=ast.Subscript() as target, op=ast.Add(), value=value
            ):
                kept.add_to_entry(target, value)
            case ast.Expr(
                value=ast.Call(
                    func=ast.Attribute(attr="append", value=ast.Name() as target),
                    args=[value],
                )
            ):
                kept.append(target, value)
            case ast.Expr(
                value=ast.Call(
                    func=ast.Attribute(attr="append", value=ast.Subscript() as target),
                    args=[value],
                )
            ):
                kept.append_to_entry(target, value)
    return kept.source()


class _Kept:
    """Results of a loop that stay on the GPU until it is over."""

    def __init__(
        self, code: CellCode, edit: SourceEdit, loop: ast.For, read: ast.Call
    ) -> None:
        self._code, self._edit, self._loop, self._read = code, edit, loop, read
        #: what is made of a dictionary's entries after the loop, by names of both
        self._entries: dict[str, dict[str, list[str]]] = {}

    def source(self) -> str:
        """Return the whole source after the changes; empty where there are none."""
        for name, made in self._entries.items():
            for value, keys in made.items():
                listed = f"key: {value} for key in [{', '.join(keys)}] if key in {name}"
                self._edit.after(self._loop, f"{name}.update({{{listed}}})")
        return self._edit.source()

    def add(self, target: ast.Name, value: ast.expr) -> None:
        """Keep a sum, `total += loss.item()`."""
        name, read = target.id, self._scaled(value)
        if read is None or uses(self._loop, name) != 1:
            return
        first = begins(self._code, name, self._loop)
        if isinstance(first, float):
            # as exactly as Python adds its numbers
            self._edit.replace(read, f"{self._result(read)}.double()")
            self._edit.after(self._loop, f"{name} = float({name})")
        elif isinstance(first, int):
            one, torch = self._edit.free_name("one"), self._edit.torch
            # as wide as Python's numbers, of which it may be either kind
            wide = (
                f"({one} := {self._result(read)}).to({torch}.float64 "
                f"if {one}.is_floating_point() else {torch}.int64)"
            )
            is_count = _counts(_result(read))
            self._edit.replace(read, self._result(read) if is_count else wide)
            summed = f"{self._edit.torch}.as_tensor({name}).item()"
            self._edit.after(self._loop, f"{name} = {summed}")

    def add_to_entry(self, target: ast.Subscript, value: ast.expr) -> None:
        """Keep a sum in a dictionary, `totals["loss"] += loss.item()`."""
        name, key, first = self._entry(target)
        read = self._scaled(value)
        if read is not None and isinstance(first, float):
            self._edit.replace(read, f"{self._result(read)}.double()")
            made = self._entries.setdefault(name, {})
            made.setdefault(f"float({name}[key])", []).append(key)

    def append(self, target: ast.Name, value: ast.expr) -> None:
        """Keep a list, `losses.append(loss.item())`."""
        name, read = target.id, self._negated(value)
        is_new = begins(self._code, name, self._loop) == []
        if read is not None and is_new and uses(self._loop, name) == 1:
            self._edit.replace(read, _one(self._edit, read, ValueFlow(self._code)))
            gathered = f"{self._edit.torch}.cat({name}).tolist() if {name} else []"
            self._edit.after(self._loop, f"{name} = {gathered}")

    def append_to_entry(self, target: ast.Subscript, value: ast.expr) -> None:
        """Keep a list in a dictionary, `board["loss"].append(loss.item())`."""
        name, key, first = self._entry(target)
        read = self._negated(value)
        if read is not None and first == []:
            self._edit.replace(read, _one(self._edit, read, ValueFlow(self._code)))
            made = self._entries.setdefault(name, {})
            joined = f"{self._edit.torch}.cat({name}[key]).tolist()"
            listed = f"{joined} if {name}[key] else []"
            made.setdefault(listed, []).append(key)

    def _entry(self, target: ast.Subscript) -> tuple[str, str, object]:
        """Return a dictionary's name, a key, and what the entry begins with.

        That is None where the loop does anything else with its entries.
        """
        match target:
            case ast.Subscript(value=ast.Name(id=name), slice=ast.Constant() as key):
                pass
            case _:
                return "", "", None
        entries = [
            ast.unparse(node.slice)
            for node in walk(self._loop)
            if isinstance(node, ast.Subscript)
            and isinstance(node.value, ast.Name)
            and node.value.id == name
            and isinstance(node.slice, ast.Constant)
        ]
        text = ast.unparse(key)
        if len(entries) != uses(self._loop, name) or entries.count(text) != 1:
            return name, text, None
        return name, text, _entry_of(begun(self._code, name, self._loop), text)

    def _result(self, read: ast.Call) -> str:
        result = _result(read)
        return f"{self._edit.operand(result or read)}.detach()"

    def _negated(self, value: ast.expr) -> ast.Call | None:
        """Return the read that a value is, or is the negative of."""
        if isinstance(value, ast.UnaryOp) and isinstance(value.op, ast.USub):
            value = value.operand
        return self._own(value)

    def _scaled(self, value: ast.expr) -> ast.Call | None:
        """Return the read that a value is, times numbers or to their power."""
        while isinstance(value, ast.BinOp):
            sides = value.left, value.right
            inner = [
                one for one in sides if self._read in walk(one) or not is_number(one)
            ]
            if len(inner) != 1:
                return None
            value = inner[0]
        return self._own(value)

    def _own(self, value: ast.expr) -> ast.Call | None:
        """Return what surely reads from the GPU: `float` may be of another number."""
        if not isinstance(value, ast.Call) or _result(value) is None:
            return None
        is_item = isinstance(value.func, ast.Attribute)
        return value if is_item or value is self._read else None


def _counts(result: ast.expr | None) -> bool:
    """Tell whether a result is how often something holds: such sums are wide."""
    match result:
        case ast.Call(func=ast.Attribute(attr="sum", value=ast.Compare()), args=[]):
            return True
    return False


def _entry_of(begun: ast.expr | None, key: str) -> object:
    """Return what an entry of a new dictionary begins with: a number, or `[]`."""
    match begun:
        case ast.Dict(keys=keys, values=values):
            names = [ast.unparse(one) if one else "" for one in keys]
            return _plain(dict(zip(names, values, strict=True)).get(key))
        case ast.Call(func=function, args=[ast.Name(id=kind)]) if (
            ast.unparse(function).split(".")[-1] == "defaultdict"
        ):
            return {"list": [], "float": 0.0}.get(kind)
    return None


def _listed(code: CellCode, read: ast.Call) -> str:
    """Write that a comprehension's results are read after it."""
    flow = ValueFlow(code)
    whole: ast.AST = read
    if isinstance(flow.parent(read), ast.UnaryOp):
        whole = flow.parent(read) or read
    made, statement = flow.parent(whole), flow.statement(read)
    above = [] if made is None else list(flow.around(made))
    between = above[: above.index(statement)] if statement in above else [read]
    if (
        not isinstance(made, ast.ListComp | ast.GeneratorExp)
        or made.elt is not whole
        or not isinstance(statement, SIMPLE)
        or not all(isinstance(one, _PARTS) for one in between)
    ):
        return ""
    taken = [one.func for one in between[:1] if isinstance(one, ast.Call)]
    names = {ast.unparse(one).split(".")[-1] for one in taken}
    if isinstance(made, ast.GeneratorExp) and not names & _TAKES_ALL:
        return ""
    edit = SourceEdit(code)
    results = edit.free_name("results")
    turns = " ".join(map(ast.unparse, made.generators))
    edit.before(statement, f"{results} = [{_one(edit, read, flow)} {turns.strip()}]")
    values = f"{edit.torch}.cat({results}).tolist()"
    if made.elt is not read and isinstance(made.elt, ast.UnaryOp):
        # of numbers of Python: a tensor of small ones wraps
        one = edit.free_name("value")
        sign = edit.text(made.elt).replace(edit.text(read), one, 1)
        values = f"[{sign} for {one} in {values}]"
    listed = f"{values} if {results} else []"
    edit.replace(made, f"({listed})" if between else listed)
    return edit.source()


def _one(edit: SourceEdit, read: ast.Call, flow: ValueFlow) -> str:
    """Write a result of one element as a part of a list of results."""
    is_float = isinstance(read.func, ast.Name)
    result = own_memory(edit, _result(read) or read, flow)
    return f"{result}{'.double()' * is_float}.reshape(1)"


def own_memory(edit: SourceEdit, result: ast.expr, flow: ValueFlow) -> str:
    """Write a result, without its gradient, so that no later work writes to it."""
    kept = edit.operand(result)
    kept = kept if kept.endswith(".detach()") else f"{kept}.detach()"
    return kept if _is_new(result, flow) else f"{kept}.clone()"


def _is_new(result: ast.expr, flow: ValueFlow) -> bool:
    """Tell whether a result has memory that nothing else has or writes to."""
    match result:
        case ast.Name(id=name):
            setting = flow.setting(name)
            loop = flow.loop(result)
            if setting is None or loop is None or flow.loop(setting) is not loop:
                return False
            given = any(name in names_in(call) for call in flow.opaque_calls)
            is_own = not flow.is_written(name) and not given
            return is_own and _is_new(setting.value, flow)
        case ast.Call(func=ast.Attribute(attr=name), keywords=keywords):
            in_place = {one.arg for one in keywords} & {"out", "inplace"}
            is_passed = only_passes(name) and not name.endswith("_")
            return (
                is_passed
                and not in_place
                and "True" not in map(ast.unparse, result.args)
            )
    return False


def loop_around(code: CellCode, node: ast.AST) -> ast.For | None:
    """Return the outermost `for` around code; None in a function, or in `while`."""
    loops = [
        loop
        for loop in walk(code.tree)
        if isinstance(loop, ast.For | ast.While | ast.FunctionDef | ast.ClassDef)
        and node in walk(loop)
    ]
    first = loops[0] if loops else None
    return first if isinstance(first, ast.For) else None


def calls_in_turns(code: CellCode) -> bool:
    """Tell whether turns of a cell call anything, as another cell's function.

    What one call does in turns of its own is a library's, perhaps.
    """
    turns = (ast.For, ast.While, ast.ListComp, ast.SetComp, ast.DictComp)
    loops = [
        one for one in walk(code.tree) if isinstance(one, (*turns, ast.GeneratorExp))
    ]
    return any(isinstance(part, ast.Call) for one in loops for part in walk(one))


def uses(tree: ast.AST, name: str) -> int:
    """Count how often code reads or sets a name."""
    return sum(isinstance(node, ast.Name) and node.id == name for node in walk(tree))


def times_set(tree: ast.AST, name: str) -> int:
    """Count how often code sets a name, or deletes it."""
    return sum(
        isinstance(node, ast.Name)
        and node.id == name
        and not isinstance(node.ctx, ast.Load)
        for node in walk(tree)
    )


def _result(read: ast.Call) -> ast.expr | None:
    """Return what is read as it is: `int` and `bool` change it."""
    match read:
        case ast.Call(func=ast.Attribute(attr="item", value=result), args=[]):
            return result
        case ast.Call(func=ast.Name(id="float"), args=[result], keywords=[]):
            return result
    return None


def is_read_elsewhere(flow: ValueFlow, name: str, loop: ast.AST) -> bool:
    """Tell whether another function reads a name: what a loop has so far, perhaps."""
    own = flow.function(loop)
    return any(flow.function(one) is not own for one in flow.reads(name))


def begins(code: CellCode, name: str, loop: ast.For) -> object:
    """Return what a name is set to before a loop: a number, or `[]`."""
    return _plain(begun(code, name, loop))


def _plain(value: ast.expr | None) -> object:
    if isinstance(value, ast.List) and not value.elts:
        return []
    return value.value if isinstance(value, ast.Constant) else None


def begun(code: CellCode, name: str, loop: ast.For) -> ast.expr | None:
    """Return what a name is set to before a loop.

    It is in the loop's block, or in one around its `with`.
    """
    statement: ast.AST | None = loop
    flow = ValueFlow(code)
    if is_read_elsewhere(flow, name, loop):
        return None
    while isinstance(statement, ast.For | ast.With):
        (block,) = (one for one in blocks(code.tree) if statement in one.statements)
        at = block.statements.index(statement)
        for before in reversed(block.statements[:at]):
            value = _set_to(before, name)
            if value is not None:
                return value
            if uses(before, name):
                return None
        statement = flow.parent(statement)
        items = statement.items if isinstance(statement, ast.With) else []
        if not items or any(uses(item, name) for item in items):
            return None
    return None


def _set_to(statement: ast.stmt, name: str) -> ast.expr | None:
    """Return what a statement sets a name to, by itself or beside others."""
    match statement:
        case ast.Assign(targets=[ast.Name(id=target)], value=value):
            return value if target == name else None
        case ast.Assign(
            targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=values)
        ) if len(targets) == len(values):
            named = zip(map(ast.unparse, targets), values, strict=True)
            return dict(named).get(name)
    return None
