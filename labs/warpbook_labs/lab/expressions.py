"""Arithmetic of whole numbers with names, such as `ceil_div(n, 256)`.

Labs and learners write it; nothing but the operators below is done.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Mapping

from warpbook_labs.lab.python.syntax import parse_expression

_MOST_CHARACTERS = 200
_MOST = 1 << 62
_FLOAT = re.compile(r"[-+]?(?:\d+\.\d*|\.\d+|\d+(?=[eE]))(?:[eE][-+]?\d+)?[fF]?")
#: before a number or a name, of which C++ makes another type
_CAST = re.compile(
    r"(?:\(|\bstatic_cast<)\s*(?:unsigned|signed|int|long|size_t|u?int(?:32|64)_t)"
    r"(?:\s+(?:int|long))*\s*(?:\)|>)(?=\s*[\w(])"
)
#: what C++ writes into numbers, and before functions
_SPELLING = re.compile(
    r"\b(0[xX][0-9a-fA-F]+|\d+)[uUlL]{1,3}\b|(?<=\d)'(?=\d)|\b(?:std|cuda)::"
)
_SIZES = {
    **dict.fromkeys(("char", "int8_t", "uint8_t", "bool"), 1),
    **dict.fromkeys(("short", "half", "__half", "__nv_bfloat16"), 2),
    **dict.fromkeys(("int", "unsigned", "float", "int32_t", "uint32_t"), 4),
    **dict.fromkeys(("double", "int64_t", "uint64_t", "size_t", "float2", "int2"), 8),
    **dict.fromkeys(("float4", "int4"), 16),
}

_BINARY: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Div: operator.floordiv,
    ast.Mod: operator.mod,
    ast.RShift: lambda a, b: a >> max(0, min(b, 63)),
    ast.LShift: lambda a, b: a << max(0, min(b, 63)),
}


def ceil_div(a: int, b: int) -> int:
    return -(-a // b)


def next_power_of_2(a: int) -> int:
    """Round up to a power of two; 1 for 1 and less."""
    return 1 << max(a - 1, 0).bit_length()


#: with how many arguments each takes
_FUNCTIONS: dict[str, tuple[Callable[..., int], int]] = {
    "ceil_div": (ceil_div, 2),
    "min": (min, 2),
    "max": (max, 2),
    "next_power_of_2": (next_power_of_2, 1),
}
#: as people write what is the same
_SAME = {"cdiv": "ceil_div", "triton.cdiv": "ceil_div"}
_SAME["triton.next_power_of_2"] = "next_power_of_2"
_TRUTHS = {"true": 1, "false": 0}


class BadExpression(ValueError):
    """The text is no expression of these names; the message says what it lacks."""


def number_of(text: str, names: Mapping[str, int]) -> int | float:
    """Read a floating number such as `1e-6f`, or compute an expression.

    Raises:
        BadExpression: it is neither.
    """
    if _FLOAT.fullmatch(text.strip()):
        return float(text.strip().rstrip("fF"))
    return value(text, names)


def value(text: str, names: Mapping[str, int]) -> int:
    """Compute an expression; `/` rounds down.

    Raises:
        BadExpression: it can't be computed.
    """
    text = text.strip()
    if len(text) > _MOST_CHARACTERS:
        raise BadExpression(f"An expression may have {_MOST_CHARACTERS} characters.")
    text = _SPELLING.sub(r"\1", _CAST.sub("", text))
    try:
        tree = parse_expression(text)
        return _value(tree.body, names)
    except ZeroDivisionError:
        raise BadExpression(f"`{text}` divides by zero.") from None
    except (SyntaxError, ValueError, RecursionError, MemoryError) as problem:
        if isinstance(problem, BadExpression):
            raise
        raise BadExpression(f"`{text}` is no expression.") from None


def _value(node: ast.expr, names: Mapping[str, int]) -> int:
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        number = int(node.value)
    elif isinstance(node, ast.Name) and node.id in _TRUTHS and node.id not in names:
        number = _TRUTHS[node.id]
    elif isinstance(node, ast.Name):
        if node.id not in names:
            known = ", ".join(sorted(names)) or "none"
            raise BadExpression(f"There is no `{node.id}` here, only: {known}.")
        number = names[node.id]
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        number = -_value(node.operand, names)
    elif isinstance(node, ast.BinOp) and type(node.op) in _BINARY:
        sides = _value(node.left, names), _value(node.right, names)
        number = _BINARY[type(node.op)](*sides)
    elif isinstance(node, ast.Call) and ast.unparse(node.func) == "sizeof":
        names_of = " ".join(ast.unparse(part) for part in node.args)
        if names_of not in _SIZES:
            raise BadExpression(f"The size of `{names_of}` is not known here.")
        number = _SIZES[names_of]
    elif isinstance(node, ast.Call):
        called = ast.unparse(node.func)
        function, arguments = _FUNCTIONS.get(_SAME.get(called, called), (None, 0))
        if function is None or node.keywords or len(node.args) != arguments:
            known = ", ".join(
                f"{name}({', '.join('ab'[:count])})"
                for name, (_, count) in _FUNCTIONS.items()
            )
            raise BadExpression(f"`{ast.unparse(node)}`: there is only {known}.")
        number = function(*(_value(arg, names) for arg in node.args))
    else:
        raise BadExpression(f"`{ast.unparse(node)[:80]}` can't be computed here.")
    if abs(number) > _MOST:
        raise BadExpression("A number is too large.")
    return number
