"""NumPy's work on copies of a GPU's tensors, written as torch's on the GPU.

A block of statements is followed from `x.cpu().numpy()` to the way back. Where anything
in between is not known to give the same in torch, the block is left as it is.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from types import EllipsisType

from warpbook_profiler.advice.code.cell_code import (
    Block,
    CellCode,
    blocks,
    names_in,
    stored_names,
)
from warpbook_profiler.advice.code.source_edit import SourceEdit
from warpbook_profiler.advice.code.torch_code import is_number
from warpbook_profiler.advice.translation.numpy_functions import (
    ALONG,
    CASTS,
    DTYPES,
    JOINS,
    METHODS,
    MODULES,
    NEW,
    OF_ARRAYS,
    OF_HOST,
    TRANSFORMS,
    Kind,
    UnsureError,
    axis_of,
    function_of,
    method_call,
    method_name,
    of_arrays,
    tensor_of,
    torch_call,
)


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
        #: what names are that nothing is known of
        self._unknown: Kind = "other" if is_sure else "number"
        self._kinds: dict[str, Kind] = {}
        #: of a name that another cell may read, the one that the edit takes
        self._names: dict[str, str] = {}
        self._has_transforms = False
        self._has_way_back = False
        self._writes = any(
            isinstance(one, ast.AugAssign)
            or (isinstance(one, ast.Subscript) and isinstance(one.ctx, ast.Store))
            for statement in block.statements
            for one in ast.walk(statement)
        )

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
        if not self._has_way_back:
            raise UnsureError
        self._edit.module("torch")
        for statement, text in changed:
            self._edit.replace(statement, text)
        return True

    def _is_touched(self, statement: ast.stmt) -> bool:
        own = [] if hasattr(statement, "body") else [statement]
        begins = any(self._begins(part) for one in own for part in ast.walk(one))
        return begins or bool(self._arrays & names_in(statement))

    @property
    def _arrays(self) -> set[str]:
        return {name for name, kind in self._kinds.items() if kind in OF_ARRAYS}

    def _begins(self, node: ast.AST) -> bool:
        """Tell whether code gives an array that is none of the ones before."""
        if isinstance(node, ast.Call) and function_of(node) in NEW:
            return "array" in self._kinds.values()
        return isinstance(node, ast.expr) and tensor_of(node) is not None

    def _pass(self, statement: ast.stmt) -> None:
        """Note which names are numbers after a statement without arrays."""
        for name in stored_names(statement):
            self._kinds.pop(name, None)
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if is_number(
                value
            ):
                self._kinds[name] = "number"

    def _statement(self, statement: ast.stmt) -> ast.stmt:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                kind, new = self._new(value)
                self._bind(name, kind, statement)
                place = ast.Name(self._names.get(name, name), ast.Store())
                return ast.Assign([place], new, lineno=0)
            case ast.Assign(targets=targets, value=value) if all(
                isinstance(one, ast.Subscript) for one in targets
            ):
                kind, new = self._new(value)
                places = [self._new(one) for one in targets]
                if kind not in ("array", "number") or any(
                    of != "array" for of, _ in places
                ):
                    raise UnsureError
                return ast.Assign([one for _, one in places], new, lineno=0)
            case ast.AugAssign(target=ast.Name() | ast.Subscript() as filled):
                of, written = self._new(filled)
                kind, new = self._new(statement.value)
                if of != "array" or kind not in ("array", "number"):
                    raise UnsureError
                if not isinstance(written, ast.Name | ast.Subscript):
                    raise UnsureError
                return ast.AugAssign(written, statement.op, new)
            case ast.Return(value=ast.expr() as value):
                return ast.Return(self._other(value))
            case ast.Expr(value=value):
                return ast.Expr(self._other(value))
        raise UnsureError

    def _bind(self, name: str, kind: Kind, statement: ast.stmt) -> None:
        """Note what a name holds now.

        Raises:
            UnsureError: code elsewhere may read the array.
        """
        was_one = name in self._arrays
        if kind not in OF_ARRAYS:
            self._kinds[name] = kind
            self._names.pop(name, None)
            return
        function, own = self._block.function, set(ast.walk(statement))
        inside = {part for one in self._block.statements for part in ast.walk(one)}
        for node in ast.walk(self._code.tree if function is None else function):
            if isinstance(node, ast.Global | ast.Nonlocal) and name in node.names:
                raise UnsureError
            if isinstance(node, ast.Name) and node.id == name and node not in own:
                is_before = node.lineno < statement.lineno
                if node not in inside or (is_before and not was_one):
                    raise UnsureError
        self._kinds[name] = kind
        if function is None and name not in self._names:
            self._names[name] = self._edit.free_name(f"{name}_on_gpu")

    def _number(self, node: ast.expr) -> ast.expr:
        kind, new = self._new(node)
        if kind != "number":
            raise UnsureError
        return new

    def _other(self, node: ast.expr) -> ast.expr:
        """Write an expression whose value is no array.

        Raises:
            UnsureError: it is one.
        """
        kind, new = self._new(node)
        if kind in OF_ARRAYS:
            raise UnsureError
        return new

    def _new(self, node: ast.expr) -> tuple[Kind, ast.expr]:
        """Give what an expression is, and how the edit writes it."""
        tensor = tensor_of(node)
        if tensor is not None:
            return "array", method_call(
                method_call(self._other(tensor), "detach"), "clone"
            )
        match node:
            case ast.Call(args=[one], keywords=[]) if function_of(
                node
            ) == "float32" and self._is_counted(one):
                # a number of float32 has no say in the dtype of floats
                return "number", ast.Call(ast.Name("float", ast.Load()), [one], [])
        begins = any(map(self._begins, ast.walk(node)))
        if not begins and not self._arrays & names_in(node):
            return ("number" if self._is_number(node) else "other"), node
        match node:
            case ast.Name(id=name):
                new_name = self._names.get(name, name)
                return self._kinds[name], ast.Name(new_name, node.ctx)
            case ast.BinOp(
                left=left,
                op=ast.BitAnd() | ast.BitOr() | ast.BitXor() as sign,
                right=right,
            ):
                masks = self._new(left), self._new(right)
                if any(kind != "mask" for kind, _ in masks):
                    raise UnsureError
                return "mask", ast.BinOp(masks[0][1], sign, masks[1][1])
            case ast.UnaryOp(op=ast.Invert() as no, operand=operand):
                kind, new = self._new(operand)
                if kind == "mask":
                    return "mask", ast.UnaryOp(no, new)
            case ast.BinOp(left=left, op=sign, right=right):
                return self._of_all([left, right], lambda a, b: ast.BinOp(a, sign, b))
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                compared = [op]
                kind, new = self._of_all(
                    [left, right], lambda a, b: ast.Compare(a, compared, [b])
                )
                return ("mask" if kind == "array" else kind), new
            case ast.UnaryOp(op=ast.USub() as minus, operand=operand):
                return self._of_all([operand], lambda a: ast.UnaryOp(minus, a))
            case ast.Subscript(value=value, slice=index):
                kind, new = self._new(value)
                if kind == "array":
                    return "array", ast.Subscript(new, self._index(index), node.ctx)
                if kind == "number":
                    return kind, ast.Subscript(new, self._number(index), node.ctx)
            case ast.Attribute(value=value, attr="shape" | "ndim" as name):
                kind, new = self._new(value)
                if kind == "array":
                    return "number", ast.Attribute(new, name, ast.Load())
            case ast.Attribute(value=value, attr="real" | "imag" as name):
                kind, new = self._new(value)
                if kind == "array":
                    return "array", ast.Attribute(new, name, ast.Load())
            case ast.Call():
                return self._call(node)
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                others = [self._other(part) for part in parts]
                return "other", type(node)(others, ast.Load())
        raise UnsureError

    def _is_number(self, node: ast.expr) -> bool:
        """Tell whether all that an expression is made of are numbers of Python."""
        if isinstance(node, ast.Name):
            return self._kinds.get(node.id, self._unknown) == "number"
        if isinstance(node, ast.Attribute) and self._unknown == "number":
            return True
        if isinstance(node, ast.BinOp):
            return self._is_number(node.left) and self._is_number(node.right)
        if isinstance(node, ast.UnaryOp):
            return self._is_number(node.operand)
        return is_number(node)

    def _is_counted(self, node: ast.expr) -> bool:
        """Tell whether functions of NumPy, if any, are given numbers of Python."""
        match node:
            case ast.Call(args=given, keywords=[]) if function_of(node):
                return all(map(self._is_counted, given))
            case ast.BinOp(left=left, right=right):
                return self._is_counted(left) and self._is_counted(right)
        return self._is_number(node)

    def _of_all(
        self, parts: Sequence[ast.expr], make: Callable[..., ast.expr]
    ) -> tuple[Kind, ast.expr]:
        """Write what takes arrays and numbers, or a tensor of the host and numbers."""
        found = [self._new(part) for part in parts]
        kinds = {kind for kind, _ in found}
        if kinds <= {"other", "number"}:
            kind: Kind = "other" if "other" in kinds else "number"
            return kind, make(*(new for _, new in found))
        if kinds & {"other", "mask"} or {"array", "host"} <= kinds:
            raise UnsureError
        kind = "array" if "array" in kinds else "host"
        return kind, make(*(new for _, new in found))

    def _index(self, index: ast.expr) -> ast.expr:
        """Write what is taken of an array.

        Raises:
            UnsureError: NumPy takes it another way than torch, or it is unknown.
        """
        match index:
            case ast.Tuple(elts=parts):
                return ast.Tuple([self._index(part) for part in parts], ast.Load())
            case ast.Slice(step=None):
                lower, upper = (
                    None if one is None else self._number(one)
                    for one in (index.lower, index.upper)
                )
                return ast.Slice(lower, upper)
            case ast.Constant(value=None | EllipsisType()):
                return index
            case ast.expr() if not isinstance(index, ast.Slice):
                kind, new = self._new(index)
                if kind in ("mask", "number"):
                    return new
        raise UnsureError

    def _call(self, call: ast.Call) -> tuple[Kind, ast.expr]:
        name = function_of(call)
        if name:
            return self._of_numpy(call, name)
        function = call.func
        match call:
            case ast.Call(func=ast.Name(id="len"), args=[one], keywords=[]):
                kind, new = self._new(one)
                if kind == "array":
                    return "number", ast.Call(function, [new], [])
            case ast.Call(
                func=ast.Attribute(
                    attr="from_numpy" | "as_tensor", value=ast.Name(id="torch")
                ),
                args=[one],
                keywords=[],
            ) if self._new(one)[0] == "array":
                return "host", self._new(one)[1]
            case ast.Call(
                func=ast.Attribute(attr="tensor" | "as_tensor", value=torch),
                args=[one],
                keywords=[ast.keyword(arg="device") as device],
            ) if ast.unparse(torch) == "torch" and self._new(one)[0] == "array":
                return self._back(call, self._new(one)[1], [], [device])
            case ast.Call(func=ast.Attribute(attr=method, value=value)):
                kind, new = self._new(value)
                if kind == "host":
                    return self._of_host(call, method, new)
                if kind == "array":
                    return "array", self._of_array(call, method, new)
        # a call of anything with what is no array any more
        arguments, keywords = self._given(call)
        if isinstance(function, ast.Attribute):
            receiver = self._other(function.value)
            function = ast.Attribute(receiver, function.attr, ast.Load())
        return "other", ast.Call(function, arguments, keywords)

    def _given(self, call: ast.Call) -> tuple[list[ast.expr], list[ast.keyword]]:
        """Write arguments none of which is an array."""
        return [self._other(one) for one in call.args], [
            ast.keyword(one.arg, self._other(one.value)) for one in call.keywords
        ]

    def _of_host(
        self, call: ast.Call, method: str, new: ast.expr
    ) -> tuple[Kind, ast.expr]:
        texts = [ast.unparse(one) for one in call.args]
        is_dtype = method == "to" and texts[:1] and texts[0].startswith("torch.")
        if method == "cuda" or (method == "to" and texts and not is_dtype):
            return self._back(call, new, *self._given(call))
        if method in OF_HOST or is_dtype:
            return "host", method_call(new, method, *self._given(call))
        raise UnsureError

    def _back(
        self,
        call: ast.Call,
        new: ast.expr,
        arguments: list[ast.expr],
        keywords: list[ast.keyword],
    ) -> tuple[Kind, ast.expr]:
        """Write the way back, which has nothing to copy then."""
        cast = [part for part in ast.walk(new) if method_name(part) in CASTS]
        if self._has_transforms and not cast:
            # which dtype NumPy's transforms give depends on its version
            raise UnsureError
        self._has_way_back = True
        if self._writes:
            # what is written later is no part of what was copied
            new = method_call(new, "clone")
        method = method_name(call)
        name = method if method in ("to", "cuda") else "to"
        return "other", method_call(new, name, arguments, keywords)

    def _of_array(self, call: ast.Call, method: str, new: ast.expr) -> ast.expr:
        given = [*call.args, *(one.value for one in call.keywords)]
        dtype = [ast.unparse(one).rpartition(".")[2] for one in call.args]
        if method == "astype" and len(given) == 1 and dtype[0] in DTYPES:
            return method_call(
                new, "to", [ast.parse(f"torch.{dtype[0]}", mode="eval").body]
            )
        if method in ("max", "min") and not given:
            return method_call(new, method)
        if method in ALONG:
            keywords = {one.arg: one.value for one in call.keywords}
            found: list[tuple[Kind, ast.expr]] = [("array", new)]
            found += [self._new(one) for one in call.args]
            return of_arrays(method, [new, *call.args], found, keywords)[1]
        if method not in METHODS or method == "astype" or call.keywords:
            raise UnsureError
        numbers = [self._number(one) for one in given]
        return method_call(new, "clone" if method == "copy" else method, numbers)

    def _of_numpy(self, call: ast.Call, name: str) -> tuple[Kind, ast.expr]:
        keywords = {one.arg: one.value for one in call.keywords}
        if any(isinstance(one, ast.Starred) for one in call.args) or None in keywords:
            raise UnsureError
        if name in NEW:
            return "array", self._created(call, name)
        if name in JOINS and call.args and isinstance(call.args[0], ast.List):
            _, parts = zip(*map(self._array, call.args[0].elts), strict=True)
            axis = axis_of(call.args[1:], keywords)
            return "array", torch_call(
                JOINS[name], [ast.List([*parts], ast.Load())], axis
            )
        found = [self._new(one) for one in call.args]
        if name.removeprefix("fft.") in TRANSFORMS:
            self._has_transforms = True
        return of_arrays(name, call.args, found, keywords)

    def _array(self, node: ast.expr) -> tuple[Kind, ast.expr]:
        kind, new = self._new(node)
        if kind != "array":
            raise UnsureError
        return kind, new

    def _created(self, call: ast.Call, name: str) -> ast.expr:
        """Write a new array where the others are.

        Raises:
            UnsureError: there are none yet, or its size or dtype is unknown.
        """
        near = next((one for one, kind in self._kinds.items() if kind == "array"), "")
        sizes = call.args[0] if len(call.args) == 1 else None
        if not near or sizes is None:
            raise UnsureError
        if isinstance(sizes, ast.Tuple):
            sizes = ast.Tuple([self._number(one) for one in sizes.elts], ast.Load())
        else:
            sizes = self._number(sizes)
        dtypes = {one.arg: ast.unparse(one.value) for one in call.keywords}
        dtype = dtypes.get("dtype", "np.float64").rpartition(".")[2]
        if dtypes.keys() - {"dtype"} or dtype not in DTYPES:
            raise UnsureError
        given = f"dtype=torch.{dtype}, device={self._names.get(near, near)}.device"
        like = ast.parse(f"torch.{name}(0, {given})", mode="eval").body
        keywords = like.keywords if isinstance(like, ast.Call) else []
        return torch_call(name, [sizes], {str(o.arg): o.value for o in keywords})
