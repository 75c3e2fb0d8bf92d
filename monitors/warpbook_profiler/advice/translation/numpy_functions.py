"""Functions of NumPy, and what they are called in torch."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Literal

from warpbook_profiler.advice.code.torch_code import is_number

#: "array": of floats of NumPy, and a tensor on the GPU in the edit; "mask": of truths;
#: "host": a tensor made of one that is not on its way back yet; "other": none of these
Kind = Literal["array", "mask", "host", "number", "other"]
OF_ARRAYS = ("array", "mask", "host")

MODULES = ("np", "numpy")
#: of the module: numbers of Python
CONSTANTS = ("pi", "e", "inf", "nan")
#: of each element; with a float they give one of its dtype in both
ELEMENTWISE = {
    **{name: name for name in "exp log sqrt sin cos tan tanh sinh cosh".split()},
    **{name: name for name in "square floor ceil sign log1p expm1 log2 log10".split()},
    **{name: name for name in "angle real imag conj abs".split()},
    **{name: name for name in "exp2 trunc rad2deg deg2rad sinc reciprocal".split()},
    **{"absolute": "abs", "negative": "neg", "conjugate": "conj", "rint": "round"},
    **{"degrees": "rad2deg", "radians": "deg2rad", "arctan": "atan"},
    **{"arcsin": "asin", "arccos": "acos", "arcsinh": "asinh", "arccosh": "acosh"},
    **{"arctanh": "atanh"},
}
TRUTHS = ("isnan", "isfinite", "isinf")
#: of arrays alone, and of an array and another or a number
OF_TWO = {
    **{name: name for name in "maximum minimum matmul hypot logaddexp".split()},
    "arctan2": "atan2",
}
OF_NUMBERS = {
    **{name: name for name in "multiply divide true_divide fmod remainder".split()},
    **{"add": "add", "subtract": "sub", "power": "pow", "mod": "remainder"},
}
SIGNS = {
    **{"add": ast.Add(), "subtract": ast.Sub(), "multiply": ast.Mult()},
    **{"divide": ast.Div(), "true_divide": ast.Div(), "power": ast.Pow()},
}
#: of matrices
MATRICES = ("linalg.inv", "linalg.det", "linalg.cholesky", "linalg.eigvalsh")
ROWS = ("linalg.inv", "linalg.cholesky")
#: of masks
LOGICAL = ("logical_and", "logical_or", "logical_xor", "logical_not")
#: along one axis, or over all
ALONG = {
    **{"sum": "sum", "mean": "mean", "amax": "amax", "max": "amax", "amin": "amin"},
    **{name: name for name in "cumsum cumprod prod nansum nanmean".split()},
    **{name: name for name in "std var linalg.norm".split()},
    **{"min": "amin"},
}
NEED_AXIS = ("cumsum", "cumprod")
SPREADS = ("std", "var")
#: of several axes in NumPy alone
OF_ONE_AXIS = ("prod", "cumsum", "cumprod")
#: methods of functions, along the first axis if none is given
OF_FUNCTIONS = {
    **{"add.reduce": "sum", "multiply.reduce": "prod", "maximum.reduce": "amax"},
    **{"minimum.reduce": "amin", "add.accumulate": "cumsum"},
    **{"multiply.accumulate": "cumprod", "maximum.accumulate": "cummax"},
    **{"minimum.accumulate": "cummin", "logaddexp.accumulate": "logcumsumexp"},
}
#: of an array, and of numbers or tuples of them in the same order; what has an axis
PLACED = {
    **{"expand_dims": ("unsqueeze", "dim"), "squeeze": ("squeeze", "dim")},
    **{"roll": ("roll", "dims"), "diff": ("diff", "dim"), "swapaxes": ("swapaxes", "")},
    **{"repeat": ("repeat_interleave", "dim"), "nan_to_num": ("nan_to_num", "")},
    **{"transpose": ("permute", ""), "flip": ("flip", "dims"), "tile": ("tile", "")},
    **{"reshape": ("reshape", ""), "ravel": ("ravel", "")},
    **{f"{name}_like": (f"{name}_like", "") for name in ("zeros", "ones")},
}
#: torch takes tuples alone
TUPLES = ("permute", "flip", "tile", "reshape")
JOINS = {"stack": "stack", "concatenate": "cat"}
TRANSFORMS = ("fft", "ifft", "rfft", "irfft")
NEW = ("zeros", "ones")
#: methods of arrays and of tensors that do the same
METHODS = ("reshape", "clip", "squeeze", "swapaxes", "ravel")
#: methods of a tensor on the host that change neither where it is nor its numbers
OF_HOST = ("float", "double", "half", "bfloat16", "contiguous", "reshape", "unsqueeze")
DTYPES = {
    **{"float32": "float32", "single": "float32"},
    **{"float64": "float64", "double": "float64", "float": "float64"},
}
#: of numbers, they give one
GIVE_NUMBERS = frozenset([*ELEMENTWISE, *OF_TWO, *OF_NUMBERS, *DTYPES]) - {"matmul"}
#: what arrays and tensors have
ATTRIBUTES: dict[str, Kind] = {
    **{"ndim": "number", "real": "array", "imag": "array", "T": "array"},
}
#: of an array, they give it, or one of another dtype
SAME = frozenset(["array", "asarray", "ascontiguousarray", "float32", "float64"])
#: they give another array in one of both
SHARED = frozenset(["asarray", "ascontiguousarray", "conj", "conjugate"])
#: of torch: they make a tensor of an array
MAKERS = ("from_numpy", "as_tensor", "tensor")


class UnsureError(Exception):
    """It is not known what torch makes of it."""


def whole_numbers(node: ast.expr) -> ast.expr:
    """Return a number, or a tuple of them, as it is.

    Raises:
        UnsureError: it is neither.
    """
    for one in node.elts if isinstance(node, ast.Tuple) else [node]:
        whole_number(one)
    return node


def whole_number(node: ast.expr) -> ast.expr:
    """Return a number as it is.

    Raises:
        UnsureError: it is none.
    """
    number = node.operand if isinstance(node, ast.UnaryOp) else node
    if isinstance(number, ast.Constant) and isinstance(number.value, int):
        return node
    raise UnsureError


def tensor_of(node: ast.expr) -> ast.expr | None:
    """Return the tensor of `x.detach().cpu().numpy()`."""
    if (
        isinstance(node, ast.Call)
        and function_of(node) in ("array", "asarray")
        and len(node.args) == 1
        and not node.keywords
    ):
        node = method_call(node.args[0], "numpy")
    names = list[str]()
    while isinstance(node, ast.Call):
        name, given = method_name(node), [*node.args, *node.keywords]
        if [ast.unparse(one) for one in given] in (["'cpu'"], ["device='cpu'"]):
            name, given = {"to": "cpu"}.get(name, ""), []
        if not isinstance(node.func, ast.Attribute) or not name or given:
            break
        names.append(name)
        node = node.func.value
        if names[0] != "numpy" or names[-1] not in ("numpy", "cpu", "detach"):
            return None
        if "cpu" in names and not _continues(node):
            return node
    return None


def _continues(node: ast.expr) -> bool:
    return method_name(node) in ("cpu", "detach", "to")


def function_of(call: ast.Call) -> str:
    """Return "clip" of `np.clip(...)` and "fft.fft" of `np.fft.fft(...)`; else ""."""
    names, node = list[str](), call.func
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    is_numpy = isinstance(node, ast.Name) and node.id in MODULES
    return ".".join(reversed(names)) if is_numpy else ""


def dtype_of(node: ast.expr) -> str:
    """Return torch's name of a dtype of NumPy, such as `np.float32`.

    Raises:
        UnsureError: it is none of floats.
    """
    name = ast.unparse(node).strip("'").rpartition(".")[2]
    if name not in DTYPES:
        raise UnsureError
    return f"torch.{DTYPES[name]}"


def method_name(node: ast.AST) -> str:
    match node:
        case ast.Call(func=ast.Attribute(attr=name)):
            return name
    return ""


def method_call(
    receiver: ast.expr,
    name: str,
    arguments: Sequence[ast.expr] = (),
    keywords: Sequence[ast.keyword] = (),
) -> ast.Call:
    function = ast.Attribute(receiver, name, ast.Load())
    return ast.Call(function, [*arguments], [*keywords])


def torch_call(
    name: str, arguments: Sequence[ast.expr], keywords: dict[str, ast.expr]
) -> ast.Call:
    function = ast.parse(f"torch.{name}", mode="eval").body
    given = [ast.keyword(key, value) for key, value in keywords.items()]
    return ast.Call(function, [*arguments], given)


def axis_of(
    arguments: Sequence[ast.expr], keywords: dict[str | None, ast.expr]
) -> dict[str, ast.expr]:
    """Write along which axis NumPy works as torch does.

    Raises:
        UnsureError: it is no number, or more is asked for.
    """
    given = dict(keywords)
    if arguments:
        given["axis"] = arguments[0]
    if given.keys() - {"axis", "keepdims"} or len(arguments) > 1:
        raise UnsureError
    axis = given.get("axis")
    if isinstance(axis, ast.Constant) and axis.value is None:
        axis = given.pop("axis")
    elif axis is not None:
        whole_numbers(axis)
    if "keepdims" in given and "axis" not in given:
        raise UnsureError
    keeps = given.get("keepdims", ast.Constant(False))
    is_known = ast.unparse(keeps) in ("True", "False")
    if not is_known or ast.unparse(axis or keeps) == "()":
        raise UnsureError
    names = {"axis": "dim", "keepdims": "keepdim"}
    return {names[str(key)]: value for key, value in given.items()}


def of_arrays(
    name: str,
    arguments: Sequence[ast.expr],
    found: Sequence[tuple[Kind, ast.expr]],
    keywords: dict[str | None, ast.expr],
) -> tuple[Kind, ast.expr]:
    """Write a function of arrays and numbers.

    Args:
        name: of NumPy.
        arguments: as NumPy is given them.
        found: what each is, and how torch is given it.
        keywords: what it is given by name.

    Raises:
        UnsureError: torch has no function that surely gives the same.
    """
    kinds, new = [kind for kind, _ in found], [one for _, one in found]
    if name in LOGICAL and set(kinds) == {"mask"} and not keywords:
        return "mask", torch_call(name, new, {})
    if name == "where" and kinds[:1] == ["mask"] and "array" in kinds[1:]:
        if len(new) == 3 and not keywords and set(kinds[1:]) <= {"array", "number"}:
            return "array", torch_call("where", new, {})
    if name == "einsum" and kinds[0] == "number" and set(kinds[1:]) == {"array"}:
        return "array", torch_call("einsum", new, {})
    if kinds == ["number", "array"] and not keywords:
        if name in SIGNS:
            return "array", ast.BinOp(new[0], SIGNS[name], new[1])
        if name in ("maximum", "minimum"):
            kinds, new = kinds[::-1], new[::-1]
    if name in PLACED and kinds[:1] == ["array"]:
        return "array", _placed(name, new[:1], arguments[1:], keywords)
    if kinds[:1] != ["array"] or set(kinds) - {"array", "number"}:
        if name not in ALONG or kinds[:1] != ["array"]:
            raise UnsureError
    if name in TRUTHS and len(new) == 1 and not keywords:
        return "mask", torch_call(name, new, {})
    if name in (*ELEMENTWISE, *MATRICES) and len(new) == 1 and not keywords:
        function = ELEMENTWISE.get(name, name)
        result = torch_call(function, new, {})
        if name == "sign":
            # torch's is 0 of NaN
            if not isinstance(new[0], ast.Name):
                raise UnsureError
            is_nan = torch_call("isnan", new, {})
            result = torch_call("where", [is_nan, *new, result], {})
        # NumPy's have rows one after the other
        return "array", method_call(result, "contiguous") if name in ROWS else result
    if name in OF_TWO and kinds == ["array", "array"] and not keywords:
        return "array", torch_call(OF_TWO[name], new, {})
    if name in OF_NUMBERS and len(kinds) == 2 and not keywords:
        return "array", torch_call(OF_NUMBERS[name], new, {})
    if name in ("maximum", "minimum") and kinds == ["array", "number"]:
        end = {"min" if name == "maximum" else "max": new[1]}
        return "array", torch_call("clamp", new[:1], end)
    if name == "clip" and set(kinds[1:]) <= {"number"}:
        ends = {str(key).removeprefix("a_"): one for key, one in keywords.items()}
        is_known = ends.keys() <= {"min", "max"} and all(map(is_number, ends.values()))
        if len(kinds) + len(ends) == 3 and is_known:
            return "array", torch_call("clamp", new, ends)
    if name in ("round", "around") and kinds[1:] in ([], ["number"]) and not keywords:
        digits = zip(["decimals"], new[1:], strict=False)
        return "array", torch_call("round", new[:1], dict(digits))
    if name in ALONG:
        return "array", _along(name, new[:1], arguments[1:], keywords)
    if name in OF_FUNCTIONS:
        function = OF_FUNCTIONS[name]
        first: dict[str, ast.expr] = {"dim": ast.Constant(0)}
        given = arguments[1:] or keywords
        axis = axis_of(arguments[1:], keywords) if given else first
        if not isinstance(axis.get("dim"), ast.Constant | ast.UnaryOp):
            raise UnsureError
        joined = torch_call(function, new[:1], axis)
        if function in ("cummax", "cummin"):
            return "array", ast.Attribute(joined, "values", ast.Load())
        return "array", joined
    if name.removeprefix("fft.") in TRANSFORMS and len(new) == 1:
        return "array", torch_call(name, new, axis_of([], keywords))
    raise UnsureError


def _along(
    name: str,
    new: Sequence[ast.expr],
    arguments: Sequence[ast.expr],
    keywords: dict[str | None, ast.expr],
) -> ast.expr:
    given = dict(keywords)
    more = dict[str, ast.expr]()
    if name in SPREADS:
        more = {"correction": whole_number(given.pop("ddof", ast.Constant(0)))}
    axis = axis_of(arguments, given)
    is_tuple = isinstance(axis.get("dim"), ast.Tuple)
    if (name in NEED_AXIS and not axis) or (name in OF_ONE_AXIS and is_tuple):
        raise UnsureError
    if name == "linalg.norm" and arguments:
        # it is the order
        raise UnsureError
    return torch_call(ALONG[name], new, axis | more)


def _placed(
    name: str,
    new: Sequence[ast.expr],
    arguments: Sequence[ast.expr],
    keywords: dict[str | None, ast.expr],
) -> ast.expr:
    function, axis = PLACED[name]
    named = {axis if key == "axis" else str(key): o for key, o in keywords.items()}
    allowed = {axis, *("nan", "posinf", "neginf") * (name == "nan_to_num")} - {""}
    needs_more = function in TUPLES and not (arguments or named)
    if named.keys() - allowed or needs_more:
        raise UnsureError
    if name != "nan_to_num":
        for one in (*arguments, *named.values()):
            whole_numbers(one)
    elif arguments or not all(map(is_number, named.values())):
        raise UnsureError
    given = [*arguments, *named.values()]
    lengths = [len(one.elts) if isinstance(one, ast.Tuple) else 0 for one in given]
    if name in ("expand_dims", "repeat") and any(lengths):
        raise UnsureError
    if name == "roll" and (len({*lengths}) > 1 or (lengths[0] and len(given) == 1)):
        # torch takes as many numbers as axes
        raise UnsureError
    if function in TUPLES:
        arguments = [_tuple(one) for one in arguments]
        named = {key: _tuple(one) for key, one in named.items()}
    return torch_call(function, [*new, *arguments], named)


def _tuple(node: ast.expr) -> ast.expr:
    return node if isinstance(node, ast.Tuple) else ast.Tuple([node], ast.Load())


def new_array(
    name: str, sizes: ast.expr, keywords: Sequence[ast.keyword], near: str
) -> ast.expr:
    """Write a new array, which is where another one is.

    Raises:
        UnsureError: its dtype is unknown.
    """
    given = {one.arg: one.value for one in keywords}
    dtype = dtype_of(given.pop("dtype", ast.Name("float64")))
    if given:
        raise UnsureError
    device = ast.Attribute(ast.Name(near, ast.Load()), "device", ast.Load())
    of_torch = ast.parse(dtype, mode="eval").body
    return torch_call(name, [sizes], {"dtype": of_torch, "device": device})
