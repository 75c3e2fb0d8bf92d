"""NumPy's work on copies of a GPU's tensors, written as torch's on the GPU.

A block of statements is followed from `x.cpu().numpy()` to the way back. Where anything
in between is not known to give the same in torch, the block is left as it is.
"""

from __future__ import annotations

import ast

from warpbook_profiler.advice.code.cell_code import (
    Block,
    CellCode,
    blocks,
    names_in,
    stored_names,
)
from warpbook_profiler.advice.code.source_edit import SourceEdit
from warpbook_profiler.advice.translation.numpy_functions import (
    MODULES,
    OF_ARRAYS,
    Kind,
    UnsureError,
    method_call,
    method_name,
)
from warpbook_profiler.advice.translation.numpy_values import NumpyValues

_VIEWS = ("torch.einsum", "torch.real", "torch.imag")


def without_numpy(code: CellCode, is_sure: bool = True) -> str:
    """Write the cell with torch in NumPy's place; empty where one step is not sure.

    Args:
        code: the cell.
        is_sure: names that nothing is known of are not taken for numbers.
    """
    if not _is_numpy(code):
        return ""
    edit, is_changed = SourceEdit(code), False
    for block in blocks(code.tree):
        try:
            is_changed |= _Block(code, edit, block, is_sure).written()
        except UnsureError:
            continue
    return edit.source() if is_changed else ""


def _is_numpy(code: CellCode) -> bool:
    """Tell whether the names of NumPy's module are not those of another one."""
    for node in ast.walk(code.tree):
        match node:
            case ast.Import(names=names) | ast.ImportFrom(names=names):
                bound = {one.asname or one.name: one.name for one in names}
                if any(bound.get(name, "numpy") != "numpy" for name in MODULES):
                    return False
    return True


class _Block:
    """One block, and what its names hold."""

    def __init__(
        self, code: CellCode, edit: SourceEdit, block: Block, is_sure: bool
    ) -> None:
        self._code, self._edit, self._block = code, edit, block
        writes = any(
            isinstance(one, ast.AugAssign)
            or (isinstance(one, ast.Subscript) and isinstance(one.ctx, ast.Store))
            for statement in block.statements
            for one in ast.walk(statement)
        )
        backs = [
            call
            for statement in block.statements
            for call in ast.walk(statement)
            if isinstance(call, ast.Call)
            and (
                method_name(call) in ("to", "cuda")
                or any(one.arg == "device" for one in call.keywords)
            )
            and "cpu" not in ast.unparse(call).rpartition("(")[2]
        ]
        self._writes = writes
        unknown: Kind = "other" if is_sure else "number"
        self._values = NumpyValues(unknown, writes, len(backs) > 1)

    def written(self) -> bool:
        """Note the edit; tell whether there is one.

        Raises:
            UnsureError: a step is not known.
        """
        changed = list[tuple[ast.stmt, str]]()
        for statement in self._block.statements:
            if not self._is_touched(statement):
                self._pass(statement)
                continue
            after = self._statement(statement)
            text = ast.unparse(after)
            if text != ast.unparse(statement):
                changed.append((statement, text))
        if not self._values.has_way_back:
            raise UnsureError
        self._edit.module("torch")
        for statement, text in changed:
            self._edit.replace(statement, text)
        return True

    def _is_touched(self, statement: ast.stmt) -> bool:
        own = [] if hasattr(statement, "body") else [statement]
        begins = any(self._values.begins(part) for one in own for part in ast.walk(one))
        return begins or bool(self._values.arrays & names_in(statement))

    def _pass(self, statement: ast.stmt) -> None:
        """Note which names are numbers after a statement without arrays."""
        for name in stored_names(statement):
            self._values.forget(name)
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if (
                self._values.is_number(value)
            ):
                self._values.bind(name, "number", value)

    def _statement(self, statement: ast.stmt) -> ast.stmt:
        match statement:
            case (
                ast.Assign(targets=[ast.Name(id=name)], value=value)
                | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value)
            ):
                kind, new = self._values.new(value)
                self._bind(name, kind, statement, new)
                place = ast.Name(self._values.names.get(name, name), ast.Store())
                return ast.Assign([place], new, lineno=0)
            case ast.Assign(targets=targets, value=value) if all(
                isinstance(one, ast.Subscript) for one in targets
            ):
                kind, new = self._values.new(value)
                places = [self._values.new(one) for one in targets]
                if kind not in ("array", "number") or any(
                    of != "array" for of, _ in places
                ):
                    raise UnsureError
                new = _own_memory(new) if kind == "array" else new
                return ast.Assign([one for _, one in places], new, lineno=0)
            case ast.AugAssign(target=ast.Name() | ast.Subscript() as filled):
                of, written = self._values.new(filled)
                kind, new = self._values.new(statement.value)
                if of != "array" or kind not in ("array", "number"):
                    raise UnsureError
                if not isinstance(written, ast.Name | ast.Subscript):
                    raise UnsureError
                is_name = isinstance(written, ast.Name)
                if is_name and self._values.dtypes.may_be_number(written):
                    # a number of NumPy is another one then
                    raise UnsureError
                new = _own_memory(new) if kind == "array" else new
                return ast.AugAssign(written, statement.op, new)
            case ast.Return(value=ast.expr() as value):
                return ast.Return(self._values.other(value))
            case ast.Expr(value=value):
                return ast.Expr(self._values.other(value))
        raise UnsureError

    def _bind(self, name: str, kind: Kind, statement: ast.stmt, new: ast.expr) -> None:
        """Note what a name holds now.

        Raises:
            UnsureError: code elsewhere may read the array.
        """
        was_one = name in self._values.arrays
        if kind not in OF_ARRAYS:
            self._values.names.pop(name, None)
            self._values.bind(name, kind, new)
            return
        is_part = self._writes and isinstance(new, ast.Subscript)
        if is_part and self._values.dtypes.may_be_number(new):
            # a number of NumPy is no part of the array
            raise UnsureError
        function, own = self._block.function, set(ast.walk(statement))
        inside = {part for one in self._block.statements for part in ast.walk(one)}
        for node in ast.walk(self._code.tree if function is None else function):
            if isinstance(node, ast.Global | ast.Nonlocal) and name in node.names:
                raise UnsureError
            if isinstance(node, ast.Name) and node.id == name and node not in own:
                is_before = node.lineno < statement.lineno
                if node not in inside or (is_before and not was_one):
                    raise UnsureError
        if function is None and name not in self._values.names:
            self._values.names[name] = self._edit.free_name(f"{name}_on_gpu")
        self._values.bind(name, kind, new)


def _own_memory(value: ast.expr) -> ast.expr:
    """Write what is stored, which may be a part of what it is stored to."""
    is_new = isinstance(value, ast.BinOp | ast.UnaryOp)
    if isinstance(value, ast.Call):
        name = ast.unparse(value.func)
        is_torch = name.startswith("torch.") and name not in _VIEWS
        is_new = is_torch or method_name(value) in ("max", "min", "clip", "clone")
    return value if is_new else method_call(value, "clone")
