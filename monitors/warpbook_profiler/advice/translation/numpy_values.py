"""Expressions of NumPy's on copies of a GPU's tensors, as torch's on the GPU."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from types import EllipsisType

from warpbook_profiler.advice.code.cell_code import names_in
from warpbook_profiler.advice.code.torch_code import is_number
from warpbook_profiler.advice.translation.numpy_dtypes import Dtypes
from warpbook_profiler.advice.translation.numpy_functions import (
    ALONG,
    ATTRIBUTES,
    CONSTANTS,
    DTYPES,
    GIVE_NUMBERS,
    JOINS,
    MAKERS,
    METHODS,
    MODULES,
    NEW,
    OF_ARRAYS,
    OF_HOST,
    PLACED,
    SAME,
    SHARED,
    Kind,
    UnsureError,
    axis_of,
    dtype_of,
    function_of,
    method_call,
    method_name,
    new_array,
    of_arrays,
    tensor_of,
    torch_call,
    whole_numbers,
)


class NumpyValues:
    """What the names of a block hold, and what expressions of them are."""

    def __init__(self, unknown: Kind, writes: bool, is_shared: bool) -> None:
        """Begin without a name; `unknown` is what other names are.

        The block writes to arrays in place, or they may come back more than once.
        """
        self._unknown: Kind = unknown
        self._writes, self._is_shared = writes, is_shared
        self.kinds: dict[str, Kind] = {}
        #: of a name that another cell may read, the one that the edit takes
        self.names: dict[str, str] = {}
        self.dtypes = Dtypes()
        self.has_way_back = False

    @property
    def arrays(self) -> set[str]:
        """Return the names of arrays."""
        return {name for name, kind in self.kinds.items() if kind in OF_ARRAYS}

    def bind(self, name: str, kind: Kind, new: ast.expr) -> None:
        """Note what a name holds, and how the edit writes that."""
        self.kinds[name] = kind
        self.dtypes.note(self.names.get(name, name), new)

    def forget(self, name: str) -> None:
        """Note that nothing is known of a name."""
        self.kinds.pop(name, None)
        self.dtypes.forget(self.names.get(name, name))

    def begins(self, node: ast.AST) -> bool:
        """Tell whether code gives an array that is none of the ones before."""
        if isinstance(node, ast.Call) and function_of(node) in NEW:
            return "array" in self.kinds.values()
        return isinstance(node, ast.expr) and tensor_of(node) is not None

    def _one(self, node: ast.expr, wanted: Kind = "number") -> ast.expr:
        kind, new = self.new(node)
        if kind != wanted:
            raise UnsureError
        return new

    def other(self, node: ast.expr) -> ast.expr:
        """Write an expression whose value is no array.

        Raises:
            UnsureError: it is one.
        """
        kind, new = self.new(node)
        if kind in OF_ARRAYS:
            raise UnsureError
        return new

    def new(self, node: ast.expr) -> tuple[Kind, ast.expr]:
        """Give what an expression is, and how the edit writes it."""
        tensor = tensor_of(node)
        if tensor is not None:
            return "array", method_call(
                method_call(self.other(tensor), "detach"), "clone"
            )
        match node:
            case ast.Call(args=[one], keywords=[]) if function_of(
                node
            ) == "float32" and self.is_number(one):
                # a number of float32 has no say in the dtype of floats
                return "number", ast.Call(ast.Name("float", ast.Load()), [one], [])
        begins = any(map(self.begins, ast.walk(node)))
        if not begins and not self.arrays & names_in(node):
            return ("number" if self.is_number(node) else "other"), node
        match node:
            case ast.Name(id=name):
                new_name = self.names.get(name, name)
                return self.kinds[name], ast.Name(new_name, node.ctx)
            case ast.BinOp(
                left=left,
                op=ast.BitAnd() | ast.BitOr() | ast.BitXor() as sign,
                right=right,
            ):
                masks = self.new(left), self.new(right)
                if any(kind != "mask" for kind, _ in masks):
                    raise UnsureError
                return "mask", ast.BinOp(masks[0][1], sign, masks[1][1])
            case ast.UnaryOp(op=ast.Invert() as no, operand=operand):
                kind, new = self.new(operand)
                if kind == "mask":
                    return "mask", ast.UnaryOp(no, new)
            case ast.BinOp(left=left, op=sign, right=right):
                kind, new = self._of_all(
                    [left, right],
                    lambda a, b: ast.BinOp(a, sign, b),
                    takes_masks=isinstance(sign, ast.Mult),
                )
                if isinstance(sign, ast.MatMult) and self.dtypes.are_several(new):
                    raise UnsureError
                return kind, new
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                compared = [op]
                kind, new = self._of_all(
                    [left, right], lambda a, b: ast.Compare(a, compared, [b])
                )
                return ("mask" if kind == "array" else kind), new
            case ast.UnaryOp(op=ast.USub() as minus, operand=operand):
                return self._of_all([operand], lambda a: ast.UnaryOp(minus, a))
            case ast.Subscript(value=value, slice=index):
                kind, new = self.new(value)
                if kind == "array":
                    return "array", ast.Subscript(new, self._index(index), node.ctx)
                if kind == "number":
                    whole = new.args[0] if isinstance(new, ast.Call) else new
                    return kind, ast.Subscript(whole, self._one(index), node.ctx)
            case ast.Attribute(value=value, attr=name):
                kind, new = self.new(value)
                if kind == "array" and name == "size":
                    return "number", method_call(new, "numel")
                if kind == "array" and name == "shape":
                    # as it prints
                    shape = ast.Attribute(new, name, ast.Load())
                    return "number", ast.Call(ast.Name("tuple"), [shape], [])
                if kind == "array" and name in ATTRIBUTES:
                    return ATTRIBUTES[name], ast.Attribute(new, name, ast.Load())
            case ast.Call():
                return self._call(node)
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                others = [self.other(part) for part in parts]
                return "other", type(node)(others, ast.Load())
        raise UnsureError

    def is_number(self, node: ast.expr) -> bool:
        """Tell whether all that an expression is made of are numbers of Python."""
        if isinstance(node, ast.Name):
            return self.kinds.get(node.id, self._unknown) == "number"
        if isinstance(node, ast.Attribute):
            module, _, name = ast.unparse(node).rpartition(".")
            is_constant = module in MODULES and name in CONSTANTS
            return is_constant or self._unknown == "number"
        if isinstance(node, ast.BinOp):
            return self.is_number(node.left) and self.is_number(node.right)
        if isinstance(node, ast.UnaryOp):
            return self.is_number(node.operand)
        if isinstance(node, ast.Call) and function_of(node) in GIVE_NUMBERS:
            return not node.keywords and all(map(self.is_number, node.args))
        return is_number(node)

    def _of_all(
        self,
        parts: Sequence[ast.expr],
        make: Callable[..., ast.expr],
        takes_masks: bool = False,
    ) -> tuple[Kind, ast.expr]:
        """Write what takes arrays and numbers, or a tensor of the host and numbers."""
        found = [self.new(part) for part in parts]
        kinds = {kind for kind, _ in found}
        if kinds <= {"other", "number"}:
            kind: Kind = "other" if "other" in kinds else "number"
            return kind, make(*(new for _, new in found))
        if takes_masks and kinds == {"array", "mask"}:
            return "array", make(*(new for _, new in found))
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
                    None if one is None else self._one(one)
                    for one in (index.lower, index.upper)
                )
                return ast.Slice(lower, upper)
            case ast.Constant(value=None | EllipsisType()):
                return index
            case ast.Attribute(attr="newaxis"):
                return ast.Constant(None)
            case ast.expr() if not isinstance(index, ast.Slice):
                kind, new = self.new(index)
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
                kind, new = self.new(one)
                if kind == "array":
                    return "number", ast.Call(function, [new], [])
            case ast.Call(func=ast.Attribute(attr=method, value=torch), args=[one]) if (
                ast.unparse(torch) == "torch" and method in MAKERS
            ) and self.new(one)[0] == "array":
                return self._made(call, self.new(one)[1])
            case ast.Call(func=ast.Attribute(attr=method, value=value)):
                kind, new = self.new(value)
                if kind == "host":
                    return self._of_host(call, method, new)
                if kind == "array":
                    return "array", self._of_array(call, method, new)
                if kind == "mask" and method == "astype":
                    return "array", self._as_type(call, new)
        # a call of anything with what is no array any more
        arguments, keywords = self._given(call)
        if isinstance(function, ast.Attribute):
            receiver = self.other(function.value)
            function = ast.Attribute(receiver, function.attr, ast.Load())
        return "other", ast.Call(function, arguments, keywords)

    def _made(self, call: ast.Call, new: ast.expr) -> tuple[Kind, ast.expr]:
        """Write what makes a tensor of an array, perhaps on the GPU."""
        named = {one.arg: one for one in call.keywords}
        if named.keys() - {"dtype", "device"}:
            raise UnsureError
        if "device" in named:
            return self._back(call, new, [], list(named.values()))
        if "dtype" in named:
            new = method_call(new, "to", [named["dtype"].value])
        if method_name(call) == "tensor" and self._writes:
            new = method_call(new, "clone")
        return "host", new

    def _given(self, call: ast.Call) -> tuple[list[ast.expr], list[ast.keyword]]:
        """Write arguments none of which is an array."""
        return [self.other(one) for one in call.args], [
            ast.keyword(one.arg, self.other(one.value)) for one in call.keywords
        ]

    def _of_host(
        self, call: ast.Call, method: str, new: ast.expr
    ) -> tuple[Kind, ast.expr]:
        texts = [ast.unparse(one) for one in call.args]
        is_dtype = method == "to" and texts[:1] and texts[0].startswith("torch.")
        names = {one.arg for one in call.keywords}
        is_moved = (texts and not is_dtype) or "device" in names
        if method == "cuda" or (method == "to" and is_moved):
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
        method = "cuda" if method_name(call) == "cuda" else "to"
        made = method_call(new, method, arguments, keywords)
        if self.dtypes.is_open(made):
            raise UnsureError
        self.has_way_back = True
        if self._writes or self._is_shared:
            # what is written later is no part of what was copied
            new = method_call(new, "clone")
        return "other", method_call(new, method, arguments, keywords)

    def _of_array(self, call: ast.Call, method: str, new: ast.expr) -> ast.expr:
        given = [*call.args, *(one.value for one in call.keywords)]
        if method == "astype":
            return self._as_type(call, new)
        if method == "transpose" and (given or self._writes):
            places = ast.Tuple(call.args, ast.Load())
            one = call.args[0] if len(given) == 1 else places
            return method_call(new, "permute", [whole_numbers(one)])
        if method == "clip":
            named = [ast.keyword(o.arg, self._one(o.value)) for o in call.keywords]
            return method_call(new, "clip", list(map(self._one, call.args)), named)
        if method in ("max", "min") and not given:
            return method_call(new, method)
        if method == "copy" and not given:
            # NumPy's has rows one after the other
            return method_call(method_call(new, "contiguous"), "clone")
        if method in ALONG or method == "round":
            keywords = {one.arg: one.value for one in call.keywords}
            found: list[tuple[Kind, ast.expr]] = [("array", new)]
            found += [self.new(one) for one in call.args]
            return of_arrays(method, [new, *call.args], found, keywords)[1]
        if method not in METHODS or call.keywords:
            raise UnsureError
        numbers = [self._one(one) for one in given]
        return method_call(new, method, numbers)

    def _as_type(self, call: ast.Call, new: ast.expr) -> ast.expr:
        named = {one.arg: one.value for one in call.keywords if one.arg != "copy"}
        if self._writes and len(named) < len(call.keywords):
            # it may be the same memory
            raise UnsureError
        match call.args, named:
            case ([dtype], {}) if not named:
                return self._cast(new, dtype)
            case [], {"dtype": dtype} if len(named) == 1:
                return self._cast(new, dtype)
        raise UnsureError

    def _cast(self, new: ast.expr, dtype: ast.expr) -> ast.expr:
        of_torch = ast.parse(dtype_of(dtype), mode="eval").body
        # in torch it may be the same memory
        copied = [ast.keyword("copy", ast.Constant(True))] if self._writes else []
        return method_call(new, "to", [of_torch], copied)

    def _of_numpy(self, call: ast.Call, name: str) -> tuple[Kind, ast.expr]:
        keywords = {one.arg: one.value for one in call.keywords}
        if any(isinstance(one, ast.Starred) for one in call.args) or None in keywords:
            raise UnsureError
        if name in NEW:
            return "array", self._created(call, name)
        first = call.args[0] if call.args else None
        if name in JOINS and isinstance(first, ast.List | ast.Tuple):
            parts = [self._one(one, "array") for one in first.elts]
            axis = axis_of(call.args[1:], keywords)
            if not axis and (keywords or call.args[1:]):
                raise UnsureError
            return "array", torch_call(JOINS[name], [ast.List(parts, ast.Load())], axis)
        found = [self.new(one) for one in call.args]
        kinds, dtype = [kind for kind, _ in found], keywords.get("dtype")
        if self._writes and name in (*SHARED, *PLACED):
            # some of them are views in one of both
            raise UnsureError
        if name in SAME and kinds in (["array"], ["mask"]) and len(keywords) <= 1:
            dtype = call.func if name in DTYPES else dtype
            if dtype is not None:
                return "array", self._cast(found[0][1], dtype)
            if kinds == ["array"] and not keywords:
                new = found[0][1]
                if name == "ascontiguousarray":
                    new = method_call(new, "contiguous")
                return "array", method_call(new, "clone") if self._writes else new
        kind, new = of_arrays(name, call.args, found, keywords)
        if name in ("einsum", "matmul") and self.dtypes.are_several(new):
            raise UnsureError
        return kind, new

    def _created(self, call: ast.Call, name: str) -> ast.expr:
        """Write a new array where the others are.

        Raises:
            UnsureError: there are none yet, or its size or dtype is unknown.
        """
        near = next((one for one, kind in self.kinds.items() if kind == "array"), "")
        sizes = call.args[0] if len(call.args) == 1 else None
        if not near or sizes is None:
            raise UnsureError
        if isinstance(sizes, ast.Tuple):
            sizes = ast.Tuple([self._one(one) for one in sizes.elts], ast.Load())
        else:
            sizes = self._one(sizes)
        return new_array(name, sizes, call.keywords, self.names.get(near, near))
