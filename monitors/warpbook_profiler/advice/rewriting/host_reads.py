"""What a loop reads of the GPU, copied once after it, and then what is done with it.

A turn's work on the GPU stays in the loop. What reads results, and all that needs what
was read, goes to a second loop over kept results, in the order of the source.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Collection, Iterator
from typing import NamedTuple

from warpbook_profiler.advice.code.cell_code import (
    CellCode,
    last_name,
    names_in,
    stored_names,
)
from warpbook_profiler.advice.code.source_edit import SourceEdit
from warpbook_profiler.advice.rewriting.host_copies import (
    Form,
    HostCopies,
    form_of,
    formatted,
    is_print,
    is_whole,
    read_of,
)
from warpbook_profiler.advice.rewriting.inlined_calls import inlined
from warpbook_profiler.advice.rewriting.looped_values import with_loops
from warpbook_profiler.advice.rewriting.turns import (
    LAZY,
    UnsureError,
    loaded,
    replacing,
    rewritten,
    whole_loops,
)

#: a value in memory of its own
OWN = (
    "def {name}(value):\n    return value.clone() if hasattr(value, 'clone') else value"
)


class _Kept(NamedTuple):
    #: of all turns, and of one
    every: str
    one: str
    #: of what is read; None for what stays as it is
    form: Form | None
    is_in_each: bool


def read_after(code: CellCode) -> Iterator[str]:
    """Write each loop that reads results as one that keeps them, and one after it."""
    readers = {
        one.name
        for one in code.tree.body
        if isinstance(one, ast.FunctionDef) and any(map(_reads, ast.walk(one)))
    }

    def reads(node: ast.AST) -> bool:
        calls = isinstance(node, ast.Call) and last_name(node.func) in readers
        return calls or _reads(node)

    looped = with_loops(code, reads)
    made = inlined(CellCode(looped) if looped else code, readers) if readers else ""
    for one in (code, *(CellCode(text) for text in (looped, made) if text)):
        for loop in whole_loops(one.tree):
            try:
                text = _Reads(one, loop).written()
            except UnsureError:
                continue
            if text:
                yield text
    # what else is called with results, after them all
    for loop in whole_loops(code.tree) if readers else ():
        try:
            text = _Reads(code, loop, readers).written()
        except UnsureError:
            continue
        if text:
            yield text


class _Reads:
    def __init__(
        self,
        code: CellCode,
        loop: ast.For | ast.While,
        readers: Collection[str] = (),
    ) -> None:
        self._loop, self._edit = loop, SourceEdit(code)
        self._readers = readers
        self._body = list(_flat(loop.body))
        self._set = stored_names(ast.Module(loop.body, []))
        given = stored_names(loop.target) if isinstance(loop, ast.For) else set[str]()
        self._local = self._set | given
        self._touched = set[str]()
        self._moved = self._later()
        self._kept: list[_Kept] = []
        #: something that is kept is computed where it is
        self._computes = False
        self._own = self._own_name = ""

    def written(self) -> str:
        loop, edit = self._loop, self._edit
        around = loop.iter if isinstance(loop, ast.For) else loop.test
        if not self._moved or loaded(around) & self._touched:
            return ""
        after = [self._move(one) for one in self._body if one in self._moved]
        if not any(one.is_in_each for one in self._kept):
            # turns that keep something only if a condition is met are counted
            _, line = self.keep(ast.Constant(None), True, None)
            edit.before(loop.body[0], line)
        in_each = [one for one in self._kept if one.is_in_each]
        stays = len(self._moved) < len(self._body) or self._computes
        if not in_each or not stays or not any(one.form for one in self._kept):
            return ""
        begun = [f"{one.every} = []" for one in self._kept]
        copies, lines = HostCopies(edit), list[str]()

        def given(one: _Kept) -> str:
            return copies.of(one.every, one.form) if one.form else one.every

        for one in self._kept:
            if not one.is_in_each:
                lines.append(f"{one.one} = iter({given(one)})")
        names = ", ".join(one.one for one in in_each)
        over = list(map(given, in_each))
        whole = f"zip({', '.join(over)})" if len(over) > 1 else over[0]
        lines = [*copies.lines, *lines, f"for {names} in {whole}:"]
        for text in after:
            lines += [f"    {line}" for line in text.splitlines()]
        edit.before(loop, "\n".join([*self._own.splitlines(), *begun]))
        edit.after(loop, "\n".join(lines))
        return edit.source()

    def _later(self) -> set[ast.stmt]:
        """Return the statements that read results, and those that need what was read.

        All that changes the same lists goes together, and all that prints.
        """
        moved, touched = set[ast.stmt](), self._touched
        before = -1
        while len(moved) != before:
            before = len(moved)
            for one in self._body:
                reads = any(_reads(part) for part in ast.walk(one))
                called = self.reader(one)
                if one in moved or not (reads or called or names_in(one) & touched):
                    continue
                moved.add(one)
                touched |= stored_names(one) | _changed(one)
                # it may print
                touched |= {*names_in(called.func), "print"} if called else set()
        return moved

    def reader(self, statement: ast.AST) -> ast.Call | None:
        """Return a statement's call of what reads and gives nothing; else None.

        That an object is of the class that has the method is a guess, by its name.
        """
        match statement:
            case ast.Expr(value=ast.Call(func=ast.Name(id=name)) as call):
                names: tuple[str, ...] = (name, "___call__")
            case ast.Expr(value=ast.Call(func=ast.Attribute(attr=name)) as call):
                names = (f"_{name}",)
            case _:
                return None
        return call if any(one.endswith(names) for one in self._readers) else None

    def _move(self, statement: ast.stmt) -> str:
        """Have the loop keep what a statement reads; write it for afterwards."""
        gathered, text = self._moved_text(statement, is_in_each=True)
        if gathered:
            self._edit.before(statement, "\n".join(gathered))
        self._edit.delete(statement)
        return text

    def _moved_text(
        self, statement: ast.stmt, is_in_each: bool
    ) -> tuple[list[str], str]:
        match statement:
            case ast.If(test=test, body=body, orelse=orelse):
                gathered, text = self._simple(ast.Expr(test), is_in_each)
                reads = any(_reads(part) for part in ast.walk(test))
                lines, then = [f"if {text}:"], [f"if {ast.unparse(test)}:"]
                for arm in (body, orelse):
                    if arm is orelse and arm:
                        lines, then = [*lines, "else:"], [*then, "else:"]
                    length = len(then)
                    for one in arm:
                        kept, inner = self._moved_text(one, is_in_each=False)
                        then += [f"    {line}" for line in kept]
                        lines += [f"    {line}" for line in inner.splitlines()]
                    if len(then) == length and arm:
                        then.append("    pass")
                is_known = not reads and not loaded(test) & self._touched
                keeps = any(line.strip() not in ("pass", "else:") for line in then[1:])
                if keeps and not is_known:
                    raise UnsureError
                return [*gathered, *(then if keeps else [])], "\n".join(lines)
            case ast.Assign() | ast.AugAssign() | ast.AnnAssign() | ast.Expr():
                return self._simple(statement, is_in_each)
        raise UnsureError

    def _simple(self, statement: ast.stmt, is_in_each: bool) -> tuple[list[str], str]:
        """Write a statement of what was kept, and what keeps it."""
        keeper = _Keeper(self, is_in_each, self.reader(statement))
        return keeper.gathered, rewritten(statement, keeper.instead)

    def _owned(self, node: ast.expr) -> str:
        """Write a value in memory that no later turn writes to."""
        loop, text = self._loop, ast.unparse(node)
        if isinstance(node, ast.BinOp | ast.Compare | ast.Constant) or _is_new(node):
            return text
        if isinstance(node, ast.Name):
            if isinstance(loop, ast.For) and node.id in stored_names(loop.target):
                return text
            if _is_set_anew(loop, node.id):
                return text
        if not self._own:
            self._own_name = self._edit.free_name("own")
            self._own = OWN.format(name=self._own_name)
        return f"{self._own_name}({text})"

    def keep(
        self, node: ast.expr, is_in_each: bool, form: Form | None
    ) -> tuple[_Kept, str]:
        """Keep a value of each turn; give its names, and the line that keeps it."""
        is_one = isinstance(node, ast.Constant)
        stem = node.id if isinstance(node, ast.Name) else "turn" if is_one else "value"
        every = self._edit.free_name(f"kept_{stem}")
        one = self._edit.free_name(f"one_{stem}")
        kept = _Kept(every, one, form, is_in_each)
        self._kept.append(kept)
        self._computes |= not isinstance(node, ast.Name | ast.Constant)
        return kept, f"{every}.append({self._owned(node)})"

    def is_local(self, name: str) -> bool:
        """Tell whether turns set a name, and not what goes after them."""
        return name in self._local - self._touched

    def is_result(self, node: ast.expr) -> bool:
        """Tell whether a turn computes a value, perhaps a tensor."""
        is_text = isinstance(node, ast.JoinedStr | ast.Starred) or formatted(node)
        return bool(loaded(node) & self._set) and not is_text and self.is_ready(node)

    def is_ready(self, node: ast.expr) -> bool:
        """Tell whether a value needs nothing that is read of the GPU."""
        reads = any(map(_reads, ast.walk(node)))
        return not reads and not loaded(node) & self._touched


def _flat(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Give statements, and those under managers that only say how torch computes."""
    for one in body:
        match one:
            case ast.With(items=items) if all(map(_is_of_torch, items)):
                yield from _flat(one.body)
            case _:
                yield one


def _is_of_torch(item: ast.withitem) -> bool:
    call = item.context_expr
    name = last_name(call.func) if isinstance(call, ast.Call) else ""
    return name in ("no_grad", "inference_mode", "autocast", "enable_grad")


class _Keeper:
    """Of one statement: what of it the loop keeps."""

    def __init__(
        self, reads: _Reads, is_in_each: bool, called: ast.Call | None
    ) -> None:
        self._reads, self._is_in_each, self._called = reads, is_in_each, called
        self._by_text: dict[tuple[str, Form | None], _Kept] = {}
        #: what is printed as it is
        self._printed: list[ast.expr] = []
        self.gathered: list[str] = []

    def instead(self, node: ast.expr) -> ast.expr | None:
        """Return what stands for an expression after the loop; None for itself.

        Raises:
            UnsureError: it may not be computed in each turn.
        """
        if isinstance(node, LAZY) and any(map(self._reads.is_local, names_in(node))):
            raise UnsureError
        tensor = read_of(node)
        if tensor is not None and not isinstance(tensor, ast.Constant):
            if not self._reads.is_ready(tensor):
                return None
            form = form_of(node)
            kept = self._kept(tensor, form)
            return kept if is_whole(form) else with_part(node, tensor, kept)
        shown = [*(formatted(node) or ())]
        if isinstance(node, ast.Call):
            called = self._called and ast.dump(self._called)
            if is_print(node) or ast.dump(node) == called:
                shown += [*node.args, *(one.value for one in node.keywords)]
        self._printed += filter(self._reads.is_result, shown)
        match node:
            case _ if node in self._printed:
                return self._kept(node, "tensor")
            case ast.Name(id=name, ctx=ast.Load()) if self._reads.is_local(name):
                return self._kept(node, None)
        return None

    def _kept(self, node: ast.expr, form: Form | None) -> ast.expr:
        key = ast.unparse(node), form
        kept = self._by_text.get(key)
        if kept is None or not self._is_in_each:
            kept, line = self._reads.keep(node, self._is_in_each, form)
            self._by_text[key] = kept
            self.gathered.append(line)
        return _parsed(kept.one if self._is_in_each else f"next({kept.one})")


def _reads(node: ast.AST) -> bool:
    match node:
        case ast.FormattedValue() | ast.JoinedStr():
            return False
    if is_print(node):
        return True
    return read_of(node) is not None and not isinstance(read_of(node), ast.Constant)


def _changed(statement: ast.stmt) -> set[str]:
    """Return the names of what a statement may change in place, and of output."""
    names = set[str]()
    for node in ast.walk(statement):
        match node:
            case ast.Call() if is_print(node):
                names.add("print")
            case ast.Expr(ast.Call(func=ast.Attribute(value=value))):
                names |= {_root(value)} - {""}
            case (
                ast.Subscript(value=value, ctx=ast.Store())
                | ast.Attribute(value=value, ctx=ast.Store())
            ):
                names |= {_root(value)} - {""}
    return names


def _root(node: ast.expr) -> str:
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def with_part(node: ast.expr, old: ast.expr, new: ast.expr) -> ast.expr:
    """Return an expression with another one in place of a part of it."""
    holder = ast.Expr(copy.deepcopy(node))
    wanted = ast.dump(old)
    replacing(holder, lambda one: new if ast.dump(one) == wanted else None)
    return holder.value


def _parsed(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


#: methods and functions of torch whose result is never a view, nor what they are given
_NEW = frozenset(
    "sum mean max min amax amin norm std var prod abs exp log sqrt square clone "
    "argmax argmin any all tanh sigmoid softmax relu log_softmax logsumexp cumsum "
    "matmul mm bmm mv dot einsum inv solve det slogdet cholesky svd eigh eigvalsh "
    "stack cat where topk sort bincount histc cdist isnan isfinite gelu silu "
    "mse_loss l1_loss cross_entropy nll_loss binary_cross_entropy cosine_similarity "
    "binary_cross_entropy_with_logits smooth_l1_loss huber_loss kl_div".split()
)


def _is_new(node: ast.expr) -> bool:
    match node:
        case ast.Call(func=ast.Attribute(attr=name), keywords=words):
            into = {None, "out", "inplace"} & {word.arg for word in words}
            return name in _NEW and not into
    return False


def _is_set_anew(loop: ast.For | ast.While, name: str) -> bool:
    """Tell whether each turn computes a value, which nothing then writes to."""
    sets = 0
    for part in ast.walk(ast.Module(loop.body, [])):
        match part:
            case ast.AugAssign(target=target) if name in names_in(target):
                return False
            case ast.Subscript(value=value, ctx=ast.Store()) if name in names_in(value):
                return False
            case ast.Call(func=ast.Attribute(attr=method, value=value)) if (
                method.endswith("_") and name in names_in(value)
            ):
                return False
            case ast.Assign(targets=[ast.Name(id=target)], value=value) if (
                target == name
            ):
                is_computed = isinstance(value, ast.BinOp) or _is_new(value)
                sets += 1 if is_computed else 2
    return sets == 1
