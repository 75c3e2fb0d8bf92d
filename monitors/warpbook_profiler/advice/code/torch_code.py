"""The operators that a cell's source calls for, in the order in which Python does.

Names are those of traces, without "aten::" and without the underscore of what works in
place. A call of anything that is not known here is opaque: it may do any work.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from warpbook_profiler.advice.code.cell_code import walk, written
from warpbook_profiler.facts.traffic import only_passes

#: of modules, whose names are no values of a cell
MODULES = frozenset("torch F nn math np numpy cp cupy jax jnp lax".split())
#: what a product is called in steps
PRODUCT = "matmul"
#: functions and methods that multiply matrices
_PRODUCTS = frozenset(
    "matmul mm bmm addmm baddbmm linear einsum dot scaled_dot_product_attention conv1d "
    "conv2d conv3d".split()
)
#: what an operator is called among functions
BINARY: dict[type[ast.operator], str] = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.Div: "div",
    ast.Pow: "pow",
    ast.Mod: "remainder",
    ast.BitAnd: "bitwise_and",
    ast.BitOr: "bitwise_or",
    ast.MatMult: PRODUCT,
}
_COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Eq: "eq",
    ast.NotEq: "ne",
    ast.Lt: "lt",
    ast.LtE: "le",
    ast.Gt: "gt",
    ast.GtE: "ge",
}
#: what traces call the work of a function of another name
_KERNELS = {
    "softmax": "_softmax",
    "log_softmax": "_log_softmax",
    "square": "pow",
    "dropout": "native_dropout",
    "layer_norm": "native_layer_norm",
    "rms_norm": "_fused_rms_norm",
    "multiply": "mul",
    "subtract": "sub",
    "divide": "div",
    "norm": "linalg_vector_norm",
    "rsub": "sub",
    # of CuPy and JAX
    "absolute": "abs",
    "power": "pow",
    "negative": "neg",
}
#: they copy where dtype, device or layout is another one
_COPIES = frozenset(
    "float half bfloat16 double to type type_as contiguous clone cuda cpu".split()
)
#: they look at tensors another way, read them, or do nothing on the GPU
_QUIET = frozenset(
    "view reshape transpose permute unsqueeze squeeze expand expand_as swapaxes "
    "swapdims flatten unflatten chunk split unbind narrow t detach size dim numel "
    "item tolist numpy append synchronize manual_seed no_grad inference_mode autocast "
    "parameters eval train get block_until_ready".split()
)
_QUIET_BUILTINS = frozenset(
    "print range len enumerate zip list tuple str sorted float int bool".split()
)
_JOINS = frozenset("cat stack".split())
_NEW = frozenset("zeros ones empty full zeros_like ones_like empty_like".split())
_OF_NUMBERS = frozenset("size numel dim".split())
#: they run their parts later, more than once or not always
_UNSURE = (
    ast.Lambda,
    ast.ListComp,
    ast.SetComp,
    ast.DictComp,
    ast.GeneratorExp,
    ast.Await,
    ast.Yield,
    ast.YieldFrom,
    ast.NamedExpr,
    ast.BoolOp,
    ast.IfExp,
)


class Step(NamedTuple):
    """One operator that an expression calls for."""

    #: what it may be called in a trace; empty where nothing is known of it
    names: frozenset[str]
    node: ast.expr
    #: it may do nothing, as a cast to the dtype that a tensor has
    is_optional: bool = False

    @property
    def is_opaque(self) -> bool:
        """Tell whether it may do any work."""
        return not self.names


def steps(node: ast.AST) -> Iterator[Step]:
    """Give what an expression calls for; operands come before what takes them."""
    if isinstance(node, _UNSURE):
        yield Step(frozenset(), node)
        return
    for part in ast.iter_child_nodes(node):
        yield from steps(part)
    if isinstance(node, ast.expr) and not is_number(node):
        yield from _own(node)


def is_number(node: ast.expr) -> bool:
    """Tell whether an expression is surely no tensor."""
    if isinstance(node, ast.Constant):
        return True
    if isinstance(node, ast.UnaryOp):
        return is_number(node.operand)
    if isinstance(node, ast.BinOp):
        return is_number(node.left) and is_number(node.right)
    if isinstance(node, ast.Subscript):
        return isinstance(node.value, ast.Attribute) and node.value.attr == "shape"
    if isinstance(node, ast.Call):
        function = node.func
        if isinstance(function, ast.Attribute):
            is_of_host = ast.unparse(function.value) in ("math", "time")
            return is_of_host or function.attr in _OF_NUMBERS
        return isinstance(function, ast.Name) and function.id in ("len", "float", "int")
    return False


def opaque_calls(tree: ast.AST) -> list[ast.Call]:
    """Give the calls anywhere in a source that may do any work.

    Calls of functions that the source defines are none: their work is in the source.
    """
    defined = {node.name for node in walk(tree) if isinstance(node, ast.FunctionDef)}
    return [
        node
        for node in walk(tree)
        if isinstance(node, ast.Call)
        and not (isinstance(node.func, ast.Name) and node.func.id in defined)
        # a class, as DataLoader
        and not written(node.func).split(".")[-1][:1].isupper()
        and any(step.is_opaque for step in _of_call(node))
    ]


def _own(node: ast.expr) -> Iterator[Step]:
    if isinstance(node, ast.BinOp):
        name = BINARY.get(type(node.op))
        if isinstance(node.op, ast.Div) and is_number(node.left):
            yield Step(frozenset({"reciprocal"}), node)
            name = "mul"
        yield Step(frozenset({name} if name else ()), node)
    elif isinstance(node, ast.UnaryOp):
        if isinstance(node.op, ast.USub):
            yield Step(frozenset({"neg"}), node)
        elif isinstance(node.op, ast.Invert):
            yield Step(frozenset({"bitwise_not", "logical_not"}), node)
    elif isinstance(node, ast.Compare):
        names = [_COMPARISONS.get(type(operator)) for operator in node.ops]
        yield Step(frozenset(name for name in names[:1] if name), node)
    elif isinstance(node, ast.Subscript):
        yield Step(frozenset({"index"}), node, is_optional=True)
    elif isinstance(node, ast.Call):
        yield from _of_call(node)


def _of_call(call: ast.Call) -> Iterator[Step]:
    function = call.func
    if isinstance(function, ast.Name):
        if function.id not in _QUIET_BUILTINS:
            yield Step(frozenset(), call)
        return
    if not isinstance(function, ast.Attribute):
        yield Step(frozenset(), call)
        return
    name = function.attr.rstrip("_")
    if name in _QUIET or _is_of_host(function.value):
        return
    traced = _KERNELS.get(name, name)
    if name in _COPIES:
        yield Step(frozenset({"copy", "clone"}), call, is_optional=True)
    elif name in _NEW:
        yield Step(frozenset({"fill", "zero"}), call, is_optional=True)
    elif name in _PRODUCTS:
        yield Step(frozenset({PRODUCT}), call)
    elif name in _JOINS:
        yield Step(_JOINS, call)
    elif only_passes(f"aten::{traced}"):
        if name == "masked_fill" and not function.attr.endswith("_"):
            yield Step(frozenset({"copy", "clone"}), call, is_optional=True)
        yield Step(frozenset({traced}), call)
    else:
        yield Step(frozenset(), call)


def _is_of_host(receiver: ast.expr) -> bool:
    """Tell whether a function is one of Python's, or steers the GPU."""
    text = ast.unparse(receiver)
    return text in ("math", "time") or text.startswith("torch.cuda")
