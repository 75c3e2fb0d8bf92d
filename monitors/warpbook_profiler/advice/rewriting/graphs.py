"""A loop's turns as calls of one compiled function, each of which is a CUDA graph.

The function computes what a turn carries to the next one and what it stores; results
are copied out of the graph's memory, which the next turn writes to. The last turn stays
as it is, so it leaves all names that the loop does.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from warpbook_profiler.advice.code.cell_code import (
    CellCode,
    NameOrder,
    last_name,
    stored_names,
)
from warpbook_profiler.advice.code.fused_code import compiled_once, taken_names
from warpbook_profiler.advice.code.source_edit import SourceEdit
from warpbook_profiler.advice.rewriting.host_reads import OWN, read_of
from warpbook_profiler.advice.rewriting.turns import (
    Turns,
    UnsureError,
    counters,
    loaded,
    loops_of,
    rewritten,
)

_DECORATOR = '{torch}.compile(mode="reduce-overhead")'
#: a graph can't hold these, or another change is about them
_NEVER = frozenset("backward step zero_grad synchronize sleep".split())
_NO_TURNS = (ast.Yield, ast.YieldFrom, ast.Await, ast.Global, ast.Nonlocal, ast.Lambda)
#: more turns of a loop inside are more code than a compiler takes in little time
_MOST_INNER = 16
#: methods that have a name without the underscore, which makes a new tensor
_IN_PLACE = frozenset(
    "add_ sub_ mul_ div_ pow_ clamp_ clamp_min_ clamp_max_ lerp_ addcmul_ addcdiv_ "
    "neg_ abs_ exp_ sqrt_ rsqrt_ reciprocal_ square_ tanh_ sigmoid_ relu_ round_ "
    "remainder_ masked_fill_ index_add_ index_fill_ scatter_ scatter_add_".split()
)
#: the turn that stays
_LAST = "[-1:]"
_JOINS = frozenset("cat concat concatenate hstack vstack append".split())
_KEEPS = frozenset("append add".split())
_MAKES_TURNS = frozenset("range zip enumerate reversed".split())


def graphs(code: CellCode) -> Iterator[str]:
    """Write each loop that only computes so that its turns are graphs."""
    for turns in loops_of(code.tree):
        try:
            text = _Graph(code, turns).written()
        except UnsureError:
            continue
        if text:
            yield text


class _Graph:
    def __init__(self, code: CellCode, turns: Turns) -> None:
        self._turns, self._edit, self._tree = turns, SourceEdit(code), code.tree
        #: of a turn: what the function does, and what is done with its results
        self._inside, self._then = list[str](), list[str]()
        self._results, self._rows = list[str](), dict[str, str]()
        #: whose values turns write to
        self._changed: dict[str, None] = {}
        #: names that turns set to something else
        self._set_anew = set[str]()
        self._stored = stored_names(ast.Module(turns.body, []))
        #: names that say which turn it is: a graph has one number for all
        self._counts = _counts(turns)

    def written(self) -> str:
        turns, edit = self._turns, self._edit
        if not _is_known(turns) or any(map(_is_never, _walked(turns.body))):
            return ""
        for statement in turns.body:
            self._take(statement)
        carried = dict.fromkeys(sorted(turns.carried & self._bound()))
        carried |= {name: None for name in self._changed if name not in carried}
        given = [*carried, *self._results]
        if not given:
            return ""
        inside = [f"{name} = {name}.clone()" for name in self._filled()] + self._inside
        lines = [f"    {line}" for one in inside for line in one.splitlines()]
        lines.append(f"    return ({', '.join(given)},)")
        body = ast.parse("\n".join(inside))
        first = NameOrder(body).read_first
        names = [one for one in taken_names(self._tree, body.body) if one in first]
        taken, decorator = ", ".join(names), _DECORATOR.format(torch=edit.torch)
        function = compiled_once(edit, "turn", taken, lines, decorator)
        by_name = {name: text for text, name in self._rows.items()}
        called = f"{function}({', '.join(by_name.get(one, one) for one in names)})"
        own, every = edit.free_name("own"), edit.free_name("turns")
        over = ast.unparse(turns.iter)
        is_range = over.startswith("range(")
        before = [*OWN.format(name=own).splitlines()]
        before.append(f"{every} = {over if is_range else f'list({over})'}")
        kept = [name for name in self._changed if name not in self._set_anew]
        starts = {name: edit.free_name(f"{name}_before") for name in kept}
        before += [f"{start} = {name}" for name, start in starts.items()]
        before += [
            f"for {ast.unparse(turns.target)} in {every}[:-1]:",
            f"    ({', '.join(given)},) = map({own}, {called})",
            *(f"    {line}" for one in self._then for line in one.splitlines()),
        ]
        # they are the same tensors as before
        written = [f"    {n} = {s}.copy_({n})" for n, s in starts.items()]
        if written:
            before += [f"if len({every}) > 1:", *written]
        if isinstance(turns.node, ast.For):
            edit.replace(turns.iter, f"{every}{_LAST}")
        else:
            (counter,) = turns.given
            before += [f"if {every}: {counter} = {every}[-1]"]
        edit.before(turns.node, "\n".join(before))
        return edit.source()

    def _bound(self) -> set[str]:
        """Return the names that the function sets."""
        return stored_names(ast.parse("\n".join(self._inside)))

    def _filled(self) -> list[str]:
        """Return the names of what is there before a turn, which fills parts of it."""
        found = {
            part.value.id
            for part in ast.walk(ast.parse("\n".join(self._inside)))
            if isinstance(part, ast.Subscript)
            and isinstance(part.ctx, ast.Store)
            and isinstance(part.value, ast.Name)
        }
        return [name for name in self._changed if name in found]

    def _take(self, statement: ast.stmt) -> None:
        """Have a statement in the function, or after it where it stores a result.

        Raises:
            UnsureError: it is neither.
        """
        match statement:
            case ast.Expr(
                ast.Call(
                    func=ast.Attribute(attr=method, value=ast.Name()), args=[value]
                )
            ) if method in _KEEPS:
                self._keep(statement, value)
            case ast.Assign(targets=[ast.Subscript(slice=place)], value=value) if (
                loaded(place) & self._turns.given
            ):
                self._keep(statement, value)
            case ast.AugAssign(target=ast.Name(id=name), value=ast.Constant()) if (
                not self._is_read(name, statement)
            ):
                self._then.append(ast.unparse(statement))
            case _:
                self._inside += self._computed(statement)

    def _computed(self, statement: ast.stmt) -> list[str]:
        """Write a statement of the function, which changes no tensor of the cell's."""
        match statement:
            case ast.Assign(targets=[target]):
                self._note(target)
                self._set_anew |= _set_names(target)
            case ast.AnnAssign(target=ast.Name() as target, value=ast.expr()):
                self._set_anew.add(target.id)
            case ast.AugAssign(target=target, op=op, value=value):
                self._note(target, is_changed=True)
                before = ast.parse(ast.unparse(target), mode="eval").body
                new = ast.Assign([target], ast.BinOp(before, op, value), lineno=0)
                return [rewritten(new, self._row)]
            case ast.Expr(
                ast.Call(func=ast.Attribute(attr=name, value=ast.Name() as target))
            ) if name in _IN_PLACE:
                self._note(target, is_changed=True)
                call = statement.value
                text = rewritten(ast.Expr(call), self._row)
                start = f"{target.id}.{name}("
                if not text.startswith(start):
                    raise UnsureError
                end = text.removeprefix(start)
                return [f"{target.id} = {target.id}.{name.removesuffix('_')}({end}"]
            case ast.With(items=items, body=body):
                head = ", ".join(map(ast.unparse, items))
                if any(item.optional_vars is not None for item in items):
                    raise UnsureError
                return [f"with {head}:", *self._block(body)]
            case ast.For(target=target, iter=over, body=body, orelse=[]) if _is_short(
                over
            ):
                head = rewritten(ast.Expr(over), self._row)
                return [f"for {ast.unparse(target)} in {head}:", *self._block(body)]
            case _:
                raise UnsureError
        return [rewritten(statement, self._row)]

    def _block(self, body: list[ast.stmt]) -> list[str]:
        lines = [line for one in body for line in self._computed(one)]
        return [f"    {part}" for line in lines for part in line.splitlines()]

    def _note(self, target: ast.expr, is_changed: bool = False) -> None:
        """Note whose values a turn writes to, that were there before it."""
        match target:
            case ast.Name(id=name):
                is_own = not is_changed or name in self._bound()
            case ast.Subscript(value=ast.Name(id=name)):
                is_own = name in self._bound()
            case ast.Tuple(elts=parts):
                for one in parts:
                    self._note(one)
                return
            case _:
                raise UnsureError
        if not is_own:
            self._changed[name] = None

    def _keep(self, statement: ast.stmt, value: ast.expr) -> None:
        """Have the function compute what a turn stores."""
        name = self._edit.free_name("result")
        self._inside.append(f"{name} = {rewritten(ast.Expr(value), self._row)}")
        self._results.append(name)

        def instead(node: ast.expr) -> ast.expr | None:
            same = ast.unparse(node) == ast.unparse(value)
            return ast.Name(name, ast.Load()) if same else None

        self._then.append(rewritten(statement, instead))

    def _row(self, node: ast.expr) -> ast.expr | None:
        """Return the name of what only one turn takes; None for all else."""
        given = self._turns.given
        match node:
            case ast.Subscript(value=ast.Name(id=rows), slice=place) if loaded(
                place
            ) & given and isinstance(node.ctx, ast.Load):
                if rows in self._stored or loaded(place) & self._stored:
                    raise UnsureError
                text = ast.unparse(node)
                if text not in self._rows:
                    self._rows[text] = self._edit.free_name("row")
                return ast.Name(self._rows[text], ast.Load())
            case ast.Name(id=name) if name in self._counts:
                raise UnsureError
        return None

    def _is_read(self, name: str, but: ast.stmt) -> bool:
        return any(name in loaded(one) for one in self._turns.body if one is not but)


def _set_names(target: ast.expr) -> set[str]:
    parts = target.elts if isinstance(target, ast.Tuple) else [target]
    return {part.id for part in parts if isinstance(part, ast.Name)}


def _walked(body: list[ast.stmt]) -> Iterator[ast.AST]:
    return ast.walk(ast.Module(body, []))


def _is_known(turns: Turns) -> bool:
    """Tell whether a loop goes over what is there, and not over what is loaded."""
    if ast.unparse(turns.iter).endswith(_LAST):
        return False
    match turns.iter:
        case ast.Call(func=ast.Name(id=name), args=given):
            return name in _MAKES_TURNS and not any(
                isinstance(one, ast.Starred) for one in given
            )
        case ast.Call(func=ast.Attribute(attr=name), args=[]):
            return name in ("items", "values", "unbind")
    return isinstance(turns.iter, ast.Name | ast.Subscript | ast.Attribute)


def _is_never(node: ast.AST) -> bool:
    """Tell whether a graph can't hold what code does, or is no help with it."""
    if isinstance(node, _NO_TURNS):
        return True
    match node:
        case ast.Call(func=ast.Attribute(attr=name)) if name in _NEVER:
            return True
        case ast.Call(func=ast.Name(id="print" | "map")):
            return True
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call() as call):
            # it grows, and a graph has one size
            return last_name(call.func) in _JOINS and name in loaded(call)
    read = read_of(node)
    return read is not None and not isinstance(read, ast.Constant)


def _is_short(over: ast.expr) -> bool:
    match over:
        case ast.Call(func=ast.Name(id="range"), args=[ast.Constant(value=int() as n)]):
            return n <= _MOST_INNER
        case ast.Call(func=ast.Name(id="zip" | "enumerate" | "reversed"), args=given):
            return all(map(_is_short, given))
    return isinstance(over, ast.Name | ast.Attribute | ast.Tuple | ast.List)


def _counts(turns: Turns) -> set[str]:
    match turns.iter:
        case ast.Call(func=ast.Name("reversed"), args=[ast.Call()]):
            return turns.given
    return counters(turns.target, turns.iter)
