"""Tensors that grow by a join in each turn, joined once after the loop instead."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import NamedTuple

from warpbook_profiler.advice.code.cell_code import CellCode, last_name, walk
from warpbook_profiler.advice.code.read_code import uses
from warpbook_profiler.advice.code.source_edit import SourceEdit
from warpbook_profiler.advice.code.torch_code import steps
from warpbook_profiler.advice.code.value_flow import FUNCTIONS, ValueFlow

_JOINS = ("cat", "concat", "concatenate", "hstack", "vstack", "dstack")
#: parts may have fewer axes than what they give
_ADD_AXES = ("hstack", "vstack", "dstack")
#: how code asks whether there is nothing yet, and whether there is something
_IS_EMPTY = ("{}.numel() == 0", "len({}) == 0", "{}.shape[0] == 0", "{}.size(0) == 0")
_IS_FILLED = ("{}.numel() > 0", "len({}) > 0", "{}.shape[0] > 0", "{}.size(0) > 0")
_Loop = ast.For | ast.While


class _Join(NamedTuple):
    """`out = cat([out, part])`, which may begin with `first` where out is None."""

    statement: ast.Assign
    call: ast.Call
    parts: list[ast.expr]
    #: the parts come before what there is
    is_front: bool
    first: ast.expr | None


@dataclass
class _Growth:
    """All that a loop does with a name."""

    name: str
    loop: _Loop
    joins: list[_Join] = field(default_factory=list)
    #: `out = part`
    begins: list[ast.Assign] = field(default_factory=list)
    #: whether there is something already, and what asks so
    tests: list[tuple[bool, ast.expr]] = field(default_factory=list)
    asks_none: bool = False


def joined_once(code: CellCode, is_sure: bool) -> str:
    """Write that loops gather in lists what they join; empty where none does.

    Args:
        code: the cell.
        is_sure: leave out what may compute something else.
    """
    edit, flow, is_changed = SourceEdit(code), ValueFlow(code), False
    seen = set[tuple[str, ast.stmt]]()
    for call in code.calls(*_JOINS):
        statement = flow.statement(call.node)
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)]):
                growth = _growth(name, statement, flow, is_sure)
            case _:
                continue
        if growth is None or (name, growth.loop) in seen:
            continue
        seen.add((name, growth.loop))
        if _is_own(code, growth, flow, is_sure):
            is_changed |= _Gathering(edit, flow, growth).write(is_sure)
    return edit.source() if is_changed else ""


def _growth(
    name: str, statement: ast.stmt, flow: ValueFlow, is_sure: bool
) -> _Growth | None:
    """Give the outermost loop that does nothing but gather with a name."""
    found = None
    for above in flow.around(statement):
        if isinstance(above, FUNCTIONS):
            break
        if isinstance(above, ast.For | ast.While):
            growth = _of_loop(name, above, is_sure)
            if growth is None:
                break
            found = growth
    return found


def _of_loop(name: str, loop: _Loop, is_sure: bool) -> _Growth | None:
    """Read a loop; None where it does something else with the name."""
    growth, left = _Growth(name, loop), uses(loop, name)
    absent = [f"{name} is None", *([] if is_sure else _named(_IS_EMPTY, name))]
    present = [f"{name} is not None", *([] if is_sure else _named(_IS_FILLED, name))]
    for node in walk(loop):
        if isinstance(node, FUNCTIONS) and uses(node, name):
            return None
        if isinstance(node, ast.Assign):
            if ast.unparse(node.targets[0]) != name or len(node.targets) > 1:
                continue
            join = _join(name, node)
            if join is not None:
                growth.joins.append(join)
                left -= 2
            elif uses(node, name) == 1 and not isinstance(node.value, ast.Constant):
                growth.begins.append(node)
                left -= 1
        elif isinstance(node, ast.Compare):
            text = ast.unparse(node)
            if text in (*absent, *present):
                growth.tests.append((text in present, node))
                growth.asks_none |= text in (absent[0], present[0])
                left -= 1
    ways = {(*_around(one.call), one.is_front) for one in growth.joins}
    is_all = not left and len(ways) == 1
    return growth if is_all else None


def _named(forms: tuple[str, ...], name: str) -> list[str]:
    return [one.format(name) for one in forms]


def _around(call: ast.Call) -> tuple[str, ...]:
    """Give the texts of what is called, and of all but the parts."""
    others = [*call.args[1:], *call.keywords]
    return ast.unparse(call.func), *map(ast.unparse, others)


def _join(name: str, statement: ast.Assign) -> _Join | None:
    """Give what a statement joins to a name; None where it does anything else."""
    call, first = statement.value, None
    if isinstance(call, ast.IfExp):
        test, first, call = ast.unparse(call.test), call.body, call.orelse
        if test == f"{name} is not None":
            first, call = call, first
        elif test != f"{name} is None":
            return None
    match call:
        case ast.Call(
            args=[ast.List(elts=parts) | ast.Tuple(elts=parts), *others],
            keywords=keywords,
        ) if last_name(call.func) in _JOINS:
            others += [one.value for one in keywords]
        case _:
            return None
    own = [ast.unparse(one) == name for one in parts]
    is_whole = sum(own) == 1 and (own[0] or own[-1]) and len(own) > 1
    # no axis that is another one in each turn
    fixed = [ast.unparse(one).removeprefix("-").isdigit() for one in others]
    if not is_whole or not all(fixed):
        return None
    parts = parts[1:] if own[0] else parts[:-1]
    more = [*parts, *([] if first is None else [first])]
    if any(isinstance(one, ast.Starred) or uses(one, name) for one in more):
        return None
    return _Join(statement, call, parts, not own[0], first)


def _is_own(code: CellCode, growth: _Growth, flow: ValueFlow, is_sure: bool) -> bool:
    """Tell whether nobody else sees or changes what grows before the loop is over."""
    name, own = growth.name, flow.function(growth.loop)
    function = growth.joins[0].call.func
    if is_sure and not ast.unparse(function).startswith(("torch.", "np.", "numpy.")):
        # of another module, or the cell's own
        return False
    for node in walk(code.tree):
        if isinstance(node, ast.Global | ast.Nonlocal) and name in node.names:
            return False
    around = {above for one in growth.joins for above in flow.around(one.statement)}
    for above in around:
        managers = [one.context_expr for one in getattr(above, "items", [])]
        if isinstance(above, ast.Try) or "suppress" in map(_called, managers):
            # what an error leaves would be read
            return False
        if is_sure and managers and growth.loop in flow.around(above):
            # the join would have a gradient, or another dtype
            return False
    others = {flow.function(one) for one in flow.reads(name)} - {own, None}
    if not all(name in _locals(one) for one in others if one is not None):
        return False
    # after the loop it has its own memory, if a join made it
    roots = flow.roots(ast.Name(name, ast.Load()))
    roots -= set() if _begins(growth) else {name}
    return not any(map(flow.is_written, roots))


def _called(value: ast.expr) -> str:
    return last_name(value.func) if isinstance(value, ast.Call) else ""


def _locals(function: ast.AST) -> set[str]:
    """Give the names that a function sets, or is given."""
    return {node.arg for node in walk(function) if isinstance(node, ast.arg)} | {
        node.id
        for node in walk(function)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }


def _begins(growth: _Growth) -> bool:
    """Tell whether a turn may begin what grows."""
    is_begun = any(one.first is not None for one in growth.joins)
    return is_begun or bool(growth.begins or growth.tests)


class _Gathering:
    """The parts of one growth, in a list."""

    def __init__(self, edit: SourceEdit, flow: ValueFlow, growth: _Growth) -> None:
        self._edit, self._flow, self._growth = edit, flow, growth
        self._list = ""

    def write(self, is_sure: bool) -> bool:
        """Write it; tell whether that was possible."""
        growth, edit = self._growth, self._edit
        call, begun = growth.joins[0].call, self._begun(is_sure)
        taken = [part for one in growth.joins for part in (*one.parts, one.first)]
        taken += [one.value for one in growth.begins]
        several = any(one.first and len(one.parts) > 1 for one in growth.joins)
        # of all parts the first decides on the axis
        is_other = is_sure and last_name(call.func) == "hstack"
        if not begun or several or is_other:
            return False
        if not all(self._kept(part) for part in taken if part is not None):
            return False
        name = self._list = edit.free_name(f"{growth.name}_parts")
        edit.before(growth.loop, f"{name} = {begun}")
        whole = self._whole_branches()
        choices = {one.statement for one in growth.joins if one.first is not None}
        for one in growth.joins:
            if one.statement not in whole:
                edit.replace(one.statement, self._more(one))
        for begin in growth.begins:
            if begin not in whole:
                edit.replace(begin, f"{name} = [{self._kept(begin.value)}]")
        for is_there, test in growth.tests:
            if (whole | choices).isdisjoint(self._flow.around(test)):
                edit.replace(test, name if is_there else f"not {name}")
        self._after(call, growth.joins[0].is_front)
        return True

    def _after(self, call: ast.Call, is_front: bool) -> None:
        name, target, text = self._list, self._growth.name, self._edit.text
        given = [f"{name}[::-1]" if is_front else name, *map(text, call.args[1:])]
        given += [f"{one.arg}={text(one.value)}" for one in call.keywords]
        joined = f"{target} = {text(call.func)}({', '.join(given)})"
        if _begins(self._growth) or last_name(call.func) in _ADD_AXES:
            # one part alone is as it was, and may have no axis
            joined = f"if len({name}) > 1:\n    {joined}"
        if _begins(self._growth):
            joined += f"\nelif {name}:\n    {target} = {name}[0]"
        self._edit.after(self._growth.loop, joined)

    def _more(self, join: _Join) -> str:
        """Write what a join does to the list."""
        kept = [self._kept(one) for one in join.parts]
        if len(kept) > 1:
            # made in the order of the source
            order = "[::-1]" * join.is_front
            return f"{self._list} += [{', '.join(kept)}]{order}"
        first = kept[0] if join.first is None else self._kept(join.first)
        if first != kept[0]:
            kept = [f"{kept[0]} if {self._list} else {first}"]
        return f"{self._list}.append({kept[0]})"

    def _whole_branches(self) -> set[ast.AST]:
        """Write branches that begin and join with the same part as one statement."""
        found = set[ast.AST]()
        joins = {one.statement: one for one in self._growth.joins}
        for is_there, test in self._growth.tests:
            branch = self._flow.parent(test)
            if not isinstance(branch, ast.If) or branch.test is not test:
                continue
            above = self._flow.parent(branch)
            if isinstance(above, ast.If) and branch in above.orelse:
                # an `elif` stays
                continue
            sides = [branch.body, branch.orelse]
            match sides[::-1] if is_there else sides:
                case [ast.Assign() as begin], [ast.Assign() as joined] if (
                    begin in self._growth.begins and joined in joins
                ):
                    more = self._more(joins[joined])
                    if more == f"{self._list}.append({self._kept(begin.value)})":
                        self._edit.replace(branch, more)
                        found |= {branch, begin, joined}
        return found

    def _begun(self, is_sure: bool) -> str:
        """Write what the list begins with; empty where that is not sure."""
        growth, flow = self._growth, self._flow
        if not _begins(growth):
            return f"[{growth.name}]"
        block = getattr(flow.parent(growth.loop), "body", [])
        before = block[: block.index(growth.loop)] if growth.loop in block else []
        last = next((one for one in reversed(before) if uses(one, growth.name)), None)
        if last is not None and ast.unparse(last) == f"{growth.name} = None":
            return "[]"
        if growth.asks_none:
            return f"[] if {growth.name} is None else [{growth.name}]"
        # the first turn may not be what begins it
        return "" if is_sure else "[]"

    def _kept(self, part: ast.expr) -> str:
        """Write a part so that no later turn changes it; empty where that fails."""
        if _is_new(part) or self._is_new_name(part):
            return self._edit.text(part)
        if not ast.unparse(self._growth.joins[0].call.func).startswith("torch."):
            return ""
        # the loop may write the next part to the same memory
        return f"{self._edit.operand(part)}.clone()"

    def _is_new_name(self, part: ast.expr) -> bool:
        """Tell whether a name is of a tensor that each turn makes and none changes."""
        setting = self._flow.setting(part.id) if isinstance(part, ast.Name) else None
        if not isinstance(part, ast.Name) or setting is None:
            return False
        growth = self._growth
        loops = {self._flow.loop(one.statement) for one in growth.joins}
        parts = [part for one in growth.joins for part in (*one.parts, one.first)]
        parts += [one.value for one in growth.begins]
        return (
            loops == {loop := self._flow.loop(setting)}
            and loop is not None
            and _is_new(setting.value)
            # what else takes it may keep or change it
            and uses(loop, part.id)
            == 1 + sum(uses(one, part.id) for one in parts if one)
        )


def _is_new(part: ast.expr) -> bool:
    """Tell whether an expression makes a tensor: no view, no change in place."""
    if isinstance(part, ast.Call):
        given = [*part.args, *(one.value for one in part.keywords)]
        names = {one.arg for one in part.keywords}
        # as `relu(x, True)`
        is_in_place = any(ast.unparse(one) == "True" for one in given)
        if ast.unparse(part.func).endswith("_") or is_in_place or "out" in names:
            return False
    own = [step for step in steps(part) if step.node is part]
    # an unknown function may give what it keeps, and dropout what it is given
    return any(
        not (one.is_optional or one.is_opaque or "native_dropout" in one.names)
        for one in own
    )
