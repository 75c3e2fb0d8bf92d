"""Functions of NumPy, and what they are called in torch."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Literal

#: "array": of floats of NumPy, and a tensor on the GPU in the edit; "mask": of truths;
#: "host": a tensor made of one that is not on its way back yet; "other": none of these
Kind = Literal["array", "mask", "host", "number", "other"]
OF_ARRAYS = ("array", "mask", "host")

MODULES = ("np", "numpy")
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
#: of masks
LOGICAL = ("logical_and", "logical_or", "logical_xor", "logical_not")
#: along one axis, or over all
ALONG = {
    **{"sum": "sum", "mean": "mean", "amax": "amax", "max": "amax", "amin": "amin"},
    **{"min": "amin", "cumsum": "cumsum"},
}
NEED_AXIS = ("cumsum",)
JOINS = {"stack": "stack", "concatenate": "cat"}
TRANSFORMS = ("fft", "ifft", "rfft", "irfft")
NEW = ("zeros", "ones")
#: methods of arrays and of tensors that do the same
METHODS = ("reshape", "clip", "copy", "astype")
#: methods of a tensor on the host that change neither where it is nor its numbers
OF_HOST = ("float", "double", "half", "bfloat16", "contiguous", "reshape", "unsqueeze")
CASTS = ("float", "half", "bfloat16")
DTYPES = ("float32", "float64")


class UnsureError(Exception):
    """It is not known what torch makes of it."""


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
    match call.func:
        case ast.Attribute(attr=name, value=ast.Name(id=module)) if module in MODULES:
            return name
        case ast.Attribute(
            attr=name, value=ast.Attribute(attr="fft", value=ast.Name(id=module))
        ) if module in MODULES:
            return f"fft.{name}"
    return ""


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
    is_one = axis is None or isinstance(ast.literal_eval(whole_number(axis)), int)
    if not is_one or ("keepdims" in given and axis is None):
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
    if kinds[:1] != ["array"] or set(kinds) - {"array", "number"}:
        raise UnsureError
    if name in TRUTHS and len(new) == 1 and not keywords:
        return "mask", torch_call(name, new, {})
    if name in ELEMENTWISE and len(new) == 1 and not keywords:
        return "array", torch_call(ELEMENTWISE[name], new, {})
    if name in OF_TWO and kinds == ["array", "array"] and not keywords:
        return "array", torch_call(OF_TWO[name], new, {})
    if name in OF_NUMBERS and len(kinds) == 2 and not keywords:
        return "array", torch_call(OF_NUMBERS[name], new, {})
    if name in ("maximum", "minimum") and kinds == ["array", "number"]:
        end = {"min" if name == "maximum" else "max": new[1]}
        return "array", torch_call("clamp", new[:1], end)
    if name == "clip" and kinds == ["array", "number", "number"] and not keywords:
        return "array", torch_call("clamp", new, {})
    if name in ALONG and kinds[1:] in ([], ["number"]):
        axis = axis_of(arguments[1:], keywords)
        if name in NEED_AXIS and not axis:
            raise UnsureError
        return "array", torch_call(ALONG[name], new[:1], axis)
    if name.removeprefix("fft.") in TRANSFORMS and len(new) == 1:
        return "array", torch_call(name, new, axis_of([], keywords))
    raise UnsureError
