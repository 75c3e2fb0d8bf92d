"""A loop's turns as batches: those whose inputs have one shape are one call of vmap.

Either whole turns are in the batch, or what each has to factor and all that follows:
then rows of any lengths lead to small matrices of one size.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import NamedTuple

from warpbook_profiler.advice.code.cell_code import (
    SIMPLE,
    CellCode,
    last_name,
    stored_names,
)
from warpbook_profiler.advice.code.source_edit import SourceEdit
from warpbook_profiler.advice.code.value_flow import ValueFlow
from warpbook_profiler.advice.rewriting.host_copies import (
    Form,
    HostCopies,
    form_of,
    is_print,
    is_whole,
    read_of,
)
from warpbook_profiler.advice.rewriting.host_reads import with_part
from warpbook_profiler.advice.rewriting.turns import (
    LAZY,
    Turns,
    UnsureError,
    counters,
    filled,
    loaded,
    loops_of,
    rewritten,
    values_of,
)

#: of torch and torch.linalg: what takes a batch of matrices as it takes one
FACTORS = frozenset(
    "inv inverse pinv solve cholesky cholesky_ex cholesky_solve eigh eigvalsh eig "
    "eigvals svd svdvals qr lu_factor det slogdet logdet matrix_exp lstsq "
    "matrix_power solve_triangular".split()
)
#: of torch: what makes tensors of values of Python
_MAKERS = frozenset(
    "tensor as_tensor asarray from_numpy LongTensor FloatTensor".split()
)
_LISTED = "listed"
_NO_VALUES = (
    *(ast.Tuple, ast.List, ast.Dict, ast.Slice, ast.JoinedStr, ast.FormattedValue),
    *(ast.Constant, ast.Starred),
)
#: what tensors have that is no method
_OF_TENSORS = frozenset("T mT H real imag shape dtype device ndim".split())
_PLACES = (ast.Slice, ast.Starred, ast.Constant)
_HELPER = """\
def {name}(function, *rows):
    places, results = {{}}, [None] * len(rows[0])
    for place, row in enumerate(zip(*rows)):
        places.setdefault(tuple(one.shape for one in row), []).append(place)
    for some in places.values():
        stacked = ({torch}.stack([one[place] for place in some]) for one in rows)
        made = (part.contiguous() for part in {torch}.vmap(function)(*stacked))
        for place, result in zip(some, zip(*(part.unbind(0) for part in made))):
            results[place] = result
    return results"""


class _Value(NamedTuple):
    """What a turn gives to what is done with it."""

    name: str
    #: of what is read; None for what stays as it is
    form: Form | None


def batches(
    code: CellCode, is_chosen: Callable[[Turns], bool] = lambda _: True
) -> Iterator[str]:
    """Write loops as batches, whole turns or what they factor."""
    for _, text in batched_loops(code, is_chosen):
        yield text


def batched_loops(
    code: CellCode, is_chosen: Callable[[Turns], bool]
) -> Iterator[tuple[ast.AST, str]]:
    """Give loops and clauses, each with the cell where it is batches."""
    listed = ((turns, made) for turns, made in _listed(code))
    loops = ((turns, None) for turns in loops_of(code.tree))
    for turns, made in (*loops, *listed):
        if turns.keeps or not is_chosen(turns):
            continue
        for parts in (_of_rows, _of_factors):
            try:
                text = _Batch(code, turns, parts(turns), made).written()
            except UnsureError:
                continue
            if text:
                yield made or turns.node, text


def _listed(code: CellCode) -> Iterator[tuple[Turns, ast.ListComp]]:
    """Find lists whose items could be a batch, as loops that append to them."""
    flow = ValueFlow(code)
    for node in ast.walk(code.tree):
        match node:
            case ast.ListComp(elt=elt, generators=[ast.comprehension(ifs=[]) as made]):
                statement = flow.statement(node)
                kept = ast.parse(f"{_LISTED}.append", mode="eval").body
                body = list[ast.stmt]([ast.Expr(ast.Call(kept, [elt], []))])
                if isinstance(statement, SIMPLE):
                    yield Turns(statement, made.target, made.iter, body), node


#: of an expression and the names that the batch sets: is it computed in the batch?
_Inside = Callable[[ast.expr, set[str]], bool]


def _of_rows(turns: Turns) -> _Inside:
    """Have all of a turn in the batch, but what takes its rows."""
    stored = turns.changed

    def inside(node: ast.expr, batched: set[str]) -> bool:
        match node:
            case ast.Name():
                return node.id not in turns.given
            case ast.Call() if last_name(node.func) in _MAKERS:
                return not loaded(node) & turns.given
            case ast.Subscript(value=value, slice=ast.Constant()):
                return inside(value, batched)
            case ast.Subscript(value=ast.Name(id=rows), slice=place):
                is_row = loaded(place) <= turns.given and rows not in stored
                return not (is_row and loaded(place))
        return True

    return inside


def _of_factors(turns: Turns) -> _Inside:
    """Have the batch begin with what factors matrices."""

    def inside(node: ast.expr, batched: set[str]) -> bool:
        return any(
            isinstance(part, ast.Call) and last_name(part.func) in FACTORS
            for part in ast.walk(node)
        ) or bool(loaded(node) & batched)

    return inside


class _Batch:
    def __init__(
        self,
        code: CellCode,
        turns: Turns,
        inside: _Inside,
        listed: ast.ListComp | None,
    ) -> None:
        self._turns, self._inside, self._listed = turns, inside, listed
        self._edit, self._code = SourceEdit(code), code
        #: names that turns set before the batch, and in it
        self._before, self._batched = set[str](), set[str]()
        self._steps, self._in_batch = list[str](), list[str]()
        self._rows: dict[str, str] = {}
        #: functions and methods of a statement
        self._called = set[str]()
        self._values: list[_Value] = []
        #: what is done with results, and the names that it sets
        self._then: list[str] = []
        self._afterwards = set[str]()
        self._at_once: list[str] = []

    def written(self) -> str:
        turns = self._turns
        if turns.carried - filled(turns.body):
            return ""
        for statement in turns.body:
            match statement:
                case ast.Assign(targets=[target], value=value) if _is_plain(
                    target
                ) and self._is_step(value):
                    self._step(statement, target, value)
                case ast.AnnAssign(
                    target=ast.Name() as target, value=ast.expr() as value
                ):
                    self._step(statement, target, value)
                case ast.Assign() | ast.AugAssign() | ast.Expr():
                    self._sink(statement)
                case _:
                    return ""
        if not self._values or not self._rows:
            return ""
        return self._made()

    def _is_step(self, value: ast.expr) -> bool:
        """Tell whether a value needs nothing that the host reads."""
        reads = any(read_of(part) is not None for part in ast.walk(value))
        return not reads and not loaded(value) & self._afterwards

    def _step(self, statement: ast.stmt, target: ast.expr, value: ast.expr) -> None:
        names = stored_names(target)
        if names & (self._before | self._batched | self._turns.given):
            raise UnsureError
        if loaded(value) & filled(self._turns.body):
            # a turn reads what the one before it left
            raise UnsureError
        if self._inside(value, self._batched):
            self._in_batch.append(self._of_batch(statement))
            self._batched |= names
        else:
            self._steps.append(ast.unparse(statement))
            self._before |= names

    def _of_batch(self, statement: ast.stmt) -> str:
        """Write a statement for the batch, whose rows are tensors and hold no others.

        Raises:
            UnsureError: a turn's own are modules, or parameters with gradients.
        """
        calls = [one.func for one in ast.walk(statement) if isinstance(one, ast.Call)]
        for node in ast.walk(statement):
            match node:
                case ast.Name(id=name) if name in self._turns.given and node in calls:
                    raise UnsureError
                case ast.Attribute(value=ast.Name(id=name), attr=part) if (
                    name in self._turns.given
                    and node not in calls
                    and part not in _OF_TENSORS
                ):
                    raise UnsureError
        self._called = {ast.unparse(one) for one in calls}
        return rewritten(statement, self._row)

    def _row(self, node: ast.expr) -> ast.expr | None:
        """Return the name of what is computed before the batch; None for all else."""
        locals_ = self._before | self._turns.given
        if isinstance(node, LAZY) and loaded(node) & locals_:
            raise UnsureError
        if isinstance(node, ast.Tuple | ast.List) or not loaded(node) & locals_:
            return None
        if isinstance(node, ast.Attribute) and ast.unparse(node) in self._called:
            return None
        if self._inside(node, self._batched):
            return None
        is_count = loaded(node) <= counters(self._turns.target, self._turns.iter)
        if isinstance(node, _PLACES) or is_count:
            raise UnsureError
        text = ast.unparse(node)
        if text not in self._rows:
            stem = node.id if isinstance(node, ast.Name) else "row"
            self._rows[text] = self._edit.free_name(f"{stem}_of_turn")
        return ast.Name(self._rows[text], ast.Load())

    def _sink(self, statement: ast.stmt) -> None:
        """Note what is done with results, once all of them are there."""

        def instead(node: ast.expr) -> ast.expr | None:
            read = read_of(node)
            if read is not None and self._is_result(read):
                value = self._value(read, form := form_of(node))
                return value if is_whole(form) else with_part(node, read, value)
            return self._value(node) if self._is_result(node) else None

        text = rewritten(statement, instead)
        self._afterwards |= stored_names(statement)
        whole = self._whole(statement, text)
        (self._at_once if whole else self._then).append(whole or text)

    def _is_result(self, node: ast.expr) -> bool:
        """Tell whether a turn computes a value, of which nothing is read yet."""
        names, own = loaded(node), self._before | self._batched
        computes = isinstance(node, ast.Call | ast.BinOp | ast.Subscript)
        reads = any(read_of(part) is not None for part in ast.walk(node))
        later = self._afterwards | filled(self._turns.body)
        is_ready = not reads and not names & later and not is_print(node)
        is_of_turn = names & own or (computes and names & self._turns.given)
        return bool(is_of_turn) and is_ready and not isinstance(node, _NO_VALUES)

    def _value(self, node: ast.expr, form: Form | None = None) -> ast.expr:
        if not self._inside(node, self._batched):
            raise UnsureError
        name = self._edit.free_name("result")
        self._in_batch.append(f"{name} = {self._of_batch(ast.Expr(node))}")
        self._values.append(_Value(name, form))
        return ast.Name(name, ast.Load())

    def _whole(self, statement: ast.stmt, text: str) -> str:
        """Write `out[i] = result`, or a sum, for all turns; empty for anything else."""
        torch, every = self._edit.torch, ""
        new = ast.parse(text).body[0]
        match statement, new:
            case (
                ast.Assign(targets=[ast.Subscript(value=out, slice=place)]),
                ast.Assign(value=ast.Name(id=name)),
            ) if (cut := self._cut(place)) and not self._is_mapping(out):
                every, start = f"{torch}.stack({{all}})", f"{ast.unparse(out)}{cut} = "
            case (
                ast.AugAssign(target=ast.Name(id=total), op=ast.Add()),
                ast.AugAssign(value=ast.Name(id=name)),
            ):
                every, start = f"{torch}.stack({{all}}).sum(0)", f"{total} += "
        found = [one for one in self._values if every and one.name == name]
        if not found or found[0].form:
            return ""
        return (start + every).format(all=f"every_{name}")

    def _cut(self, place: ast.expr) -> str:
        """Write which rows all turns store together; empty where that is not known."""
        match self._turns.target, self._turns.iter:
            case ast.Tuple(elts=[first, _]), ast.Call(
                func=ast.Name(id="enumerate"), args=[_], keywords=[]
            ):
                is_it = ast.unparse(place) == ast.unparse(first)
                return "[:len({all})]" if is_it else ""
            case target, _ if ast.unparse(place) == ast.unparse(target):
                return self._turns.cut
        return ""

    def _is_mapping(self, out: ast.expr) -> bool:
        values = values_of(self._code.tree)[ast.unparse(out)]
        return any(isinstance(one, ast.Dict | ast.DictComp) for one in values)

    def _made(self) -> str:
        turns, edit = self._turns, self._edit
        target, over = ast.unparse(turns.target), ast.unparse(turns.iter)
        given, of_turn = edit.free_name("turns"), edit.free_name("of_turn")
        in_batches = edit.free_name("in_batches")
        helper = _HELPER.format(name=in_batches, torch=edit.torch)
        is_range = over.startswith("range(")
        lines = [f"{given} = {over if is_range else f'list({over})'}"]
        kept = [edit.free_name(f"all_{name}") for name in self._rows.values()]
        if self._steps:
            lines += [f"{one} = []" for one in kept]
            lines += [f"for {target} in {given}:", *_indented(self._steps)]
            for every, text in zip(kept, self._rows, strict=True):
                lines.append(f"    {every}.append({text})")
        else:
            for every, text in zip(kept, self._rows, strict=True):
                lines.append(f"{every} = {self._gathered(text, given)}")
        names = ", ".join(value.name for value in self._values)
        columns = [f"every_{value.name}" for value in self._values]
        nothing = f"[()] * {len(columns)}"
        called = f"{in_batches}({', '.join([of_turn, *kept])})"
        lines += [
            f"def {of_turn}({', '.join(self._rows.values())}):",
            *_indented(self._in_batch),
            f"    return ({names},)",
            *helper.splitlines(),
            f"({', '.join(columns)},) = zip(*{called}) if {given} else {nothing}",
        ]
        copies, copied = HostCopies(edit), list[str]()
        for column, value in zip(columns, self._values, strict=True):
            if value.form is not None:
                copied.append(f"{column} = {copies.of(column, value.form)}")
        lines += [*copies.lines, *copied]
        if self._at_once:
            lines += [f"if {given}:", *_indented(self._at_once)]
        if self._listed is not None:
            (text,) = self._then
            item = text.removeprefix(f"{_LISTED}.append(").removesuffix(")")
            over = ", ".join([given, *columns])
            lines.append(f"{_LISTED} = [{item} for {target}, {names} in zip({over})]")
        elif self._then:
            over = ", ".join([given, *columns])
            lines += [f"for {target}, {names} in zip({over}):", *_indented(self._then)]
        lines += filter(None, [turns.after])
        if self._listed is not None:
            if edit.free_name(_LISTED) != _LISTED:
                return ""
            edit.replace(self._listed, _LISTED)
        else:
            edit.delete(turns.node)
        edit.before(turns.node, "\n".join(lines))
        return edit.source()

    def _gathered(self, text: str, given: str) -> str:
        """Write a list of a row of each turn."""
        target = ast.unparse(self._turns.target)
        if text == target:
            return given
        rows, _, place = text.removesuffix("]").rpartition("[")
        if self._turns.cut and rows.isidentifier() and place == target:
            # one operation takes a tensor apart
            return f"list({rows}{self._turns.cut})"
        return f"[{text} for {target} in {given}]"


def _indented(texts: list[str]) -> list[str]:
    return [f"    {line}" for text in texts for line in text.splitlines()]


def _is_plain(target: ast.expr) -> bool:
    parts = target.elts if isinstance(target, ast.Tuple) else [target]
    return all(isinstance(one, ast.Name) for one in parts)
