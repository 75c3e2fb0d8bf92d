"""What a learner's Triton file may say: kernels and constants, and no other Python.

This explains mistakes in words, and keeps a source from meaning one thing here and
another on a GPU. It is not what holds a hostile source back: the jail is.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator
from dataclasses import dataclass

from warpbook_labs.errors import BadSource, NotHere
from warpbook_labs.lab.syntax import parse

#: more would be no kernel that a person wrote
_MOST_NODES = 20_000
_IMPORTS = ("import triton", "import triton.language as tl")
#: a GPU knows these, and what to write in their place where there may be none
_NOT_HERE = {
    "make_block_ptr": "use pointers and masks; Triton 3.9 has no block pointers either",
    "heuristics": "name the numbers of a launch in the launch rule",
}
_BUILTINS = ("range", "min", "max", "int", "float", "bool", "len", "print", "tuple")
#: of `triton`
_HOST = ("jit", "cdiv", "next_power_of_2", "language")
#: parts of `tl` that are no part of the language, or reach past it
_NOT_OF_TL = (
    "core",
    "extra",
    "semantic",
    "standard",
    "target_info",
)
#: what a tensor, a constant or a descriptor can be asked for
_ATTRIBUTES = (
    "T abs advance argmax argmin associative_scan block_shape broadcast_to cast cdiv "
    "ceil cos cumprod cumsum dtype element_ty exp exp2 expand_dims flip floor gather "
    "histogram is_floating is_int item join load log log2 logical_and logical_or max "
    "min numel permute primitive_bitwidth ravel reduce reduce_or reshape rsqrt scalar "
    "shape sigmoid sin softmax sort split sqrt store sum to trans type value view "
    "xor_sum"
).split()
_REFUSED: dict[type[ast.AST], str] = {
    ast.Import: "Imports stand at the top of the file",
    ast.ImportFrom: "Imports stand at the top of the file",
    ast.FunctionDef: "A function inside another is no Triton",
    ast.AsyncFunctionDef: "`async` is no Triton",
    ast.ClassDef: "A class is no Triton",
    ast.Lambda: "`lambda` is no Triton",
    ast.Global: "`global` is no Triton",
    ast.Nonlocal: "`nonlocal` is no Triton",
    ast.Try: "`try` is no Triton",
    ast.With: "`with` is no Triton",
    ast.AsyncWith: "`async` is no Triton",
    ast.AsyncFor: "`async` is no Triton",
    ast.Await: "`await` is no Triton",
    ast.Yield: "`yield` is no Triton",
    ast.YieldFrom: "`yield` is no Triton",
    ast.Delete: "`del` is no Triton",
    ast.Raise: "`raise` is no Triton",
    ast.ListComp: "A comprehension is no Triton",
    ast.SetComp: "A comprehension is no Triton",
    ast.DictComp: "A comprehension is no Triton",
    ast.GeneratorExp: "A comprehension is no Triton",
    ast.JoinedStr: "An f-string is no Triton",
    ast.Starred: "`*` before a name is no Triton",
    ast.Dict: "A dictionary is no Triton",
    ast.Set: "A set is no Triton",
}


class BadTriton(BadSource):
    """The file is no Triton that could be checked; the message names the line."""


@dataclass(frozen=True)
class Kernel:
    """One `@triton.jit` function."""

    name: str
    #: in their order, constants among them
    parameters: tuple[str, ...]
    #: parameters that are `tl.constexpr`
    constants: tuple[str, ...]
    line: int


def read_kernels(source: str) -> dict[str, Kernel]:
    """Find the kernels of a source, by name.

    Raises:
        BadTriton: it says more than kernels and constants.
    """
    tree = parsed(source)
    kernels: dict[str, Kernel] = {}
    names: set[str] = set()
    for statement in tree.body:
        if isinstance(statement, ast.FunctionDef):
            kernel = _kernel(statement)
            if kernel.name in names:
                _refuse(statement, f"there is another `{kernel.name}` above")
            kernels[kernel.name] = kernel
            names.add(kernel.name)
        else:
            names |= _top_level(statement)
    if not kernels:
        raise BadTriton("There is no kernel: a function with @triton.jit above it.")
    for statement in tree.body:
        if isinstance(statement, ast.FunctionDef):
            _Body(names).visit_body(statement)
    return kernels


def parsed(source: str) -> ast.Module:
    """Read a source as Python.

    Raises:
        BadTriton: it is none.
    """
    try:
        with warnings.catch_warnings():
            # what Python finds odd in a learner's text is no matter of ours
            warnings.simplefilter("ignore")
            tree = parse(source)
    except SyntaxError as problem:
        raise BadTriton(f"{problem.msg}.", problem.lineno) from None
    except (ValueError, RecursionError, MemoryError):
        raise BadTriton("This is no Python that could be read.") from None
    if sum(1 for _ in ast.walk(tree)) > _MOST_NODES:
        raise BadTriton("The source is far larger than any kernel.")
    return tree


def _refuse(node: ast.AST, why: str) -> None:
    raise BadTriton(f"{why}.", getattr(node, "lineno", 1))


def _not_here(node: ast.AST, name: str) -> None:
    line = getattr(node, "lineno", 1)
    raise NotHere(f"`{name}` can't be checked here: {_NOT_HERE[name]}.", line)


def _top_level(statement: ast.stmt) -> set[str]:
    """Check what stands outside of functions; give the names that it makes."""
    if isinstance(statement, (ast.Import, ast.ImportFrom)):
        if ast.unparse(statement) not in _IMPORTS:
            wanted = " and ".join(f"`{line}`" for line in _IMPORTS)
            _refuse(statement, f"a kernel's file imports only {wanted}")
        return {"triton" if statement.names[0].asname is None else "tl"}
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
        return set()
    target, value = None, None
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        target, value = statement.targets[0], statement.value
    if not isinstance(target, ast.Name) or value is None:
        _refuse(
            statement,
            "outside of kernels stand only constants, as NAME = tl.constexpr(128)",
        )
        return set()
    if target.id in ("tl", "triton") or target.id.startswith("_"):
        _refuse(statement, f"`{target.id}` can't be the name of a constant")
    given = value.args if isinstance(value, ast.Call) else []
    is_fixed = isinstance(value, ast.Call) and ast.unparse(value.func) == "tl.constexpr"
    if not is_fixed or len(given) != 1 or not _is_constant(given[0]):
        # a plain number could change, and Triton takes none from outside of a kernel
        _refuse(statement, "a constant is written NAME = tl.constexpr(128)")
    return {target.id}


def _is_constant(value: ast.expr) -> bool:
    if isinstance(value, ast.Constant):
        return isinstance(value.value, (bool, int, float))
    if isinstance(value, ast.UnaryOp):
        return isinstance(value.op, ast.USub) and _is_constant(value.operand)
    return False


def _kernel(function: ast.FunctionDef) -> Kernel:
    for above in function.decorator_list:
        called = above.func if isinstance(above, ast.Call) else above
        name = ast.unparse(called).removeprefix("triton.")
        if name in _NOT_HERE:
            _not_here(above, name)
    if [ast.unparse(decorator) for decorator in function.decorator_list] != [
        "triton.jit"
    ]:
        _refuse(
            function,
            f"above `{function.name}` stands @triton.jit, and nothing else: numbers of "
            "a launch belong into the launch rule",
        )
    if function.name.startswith("_"):
        _refuse(function, f"`{function.name}`: names begin with a letter")
    given = function.args
    if given.posonlyargs or given.kwonlyargs or given.vararg or given.kwarg:
        _refuse(function, f"`{function.name}`: parameters are plain names")
    for part in (*given.defaults, *given.args):
        if isinstance(part, ast.expr) and not _is_constant(part):
            _refuse(function, f"`{function.name}`: a default must be a plain number")
        elif isinstance(part, ast.arg) and part.annotation is not None:
            if ast.unparse(part.annotation) != "tl.constexpr":
                _refuse(function, "only `tl.constexpr` may stand behind a parameter")
    names = tuple(arg.arg for arg in given.args)
    constants = tuple(arg.arg for arg in given.args if arg.annotation is not None)
    return Kernel(function.name, names, constants, function.lineno)


class _Body(ast.NodeVisitor):
    """Goes through a kernel, and refuses what Triton would not take either."""

    def __init__(self, names: set[str]) -> None:
        self._names = names | {"tl", "triton", *_BUILTINS}

    def visit_body(self, function: ast.FunctionDef) -> None:
        self._names |= set(_assigned(function))
        for statement in function.body:
            self.visit(statement)
        for default in function.args.defaults:
            self.visit(default)

    def generic_visit(self, node: ast.AST) -> None:
        # `try:` with `except*` has a type of its own, from Python 3.11 on
        why = _REFUSED.get(type(node)) or (
            "`try` is no Triton" if type(node).__name__ == "TryStar" else None
        )
        if why is not None:
            _refuse(node, why)
        super().generic_visit(node)

    def visit_Name(self, node: ast.Name) -> None:
        if node.id.startswith("__"):
            _refuse(node, f"`{node.id}`: names begin with a letter")
        if node.id not in self._names:
            _refuse(node, f"there is no `{node.id}` in a kernel")

    def visit_Attribute(self, node: ast.Attribute) -> None:
        owner = ast.unparse(node.value) if isinstance(node.value, ast.Name) else ""
        what = f"`{ast.unparse(node)[:60]}`"
        if node.attr.startswith("_"):
            _refuse(node, f"{what}: what begins with _ is no part of the language")
        if owner == "triton":
            allowed = node.attr in _HOST
        elif ast.unparse(node.value) == "tl.PropagateNan":
            allowed = node.attr in ("ALL", "NONE")
        elif owner == "tl":
            if node.attr in _NOT_HERE:
                _not_here(node, node.attr)
            allowed = node.attr not in _NOT_OF_TL
        elif ast.unparse(node.value) in ("tl.math", "triton.language"):
            allowed = node.attr not in _NOT_OF_TL
        else:
            allowed = node.attr in _ATTRIBUTES
        if not allowed or not isinstance(node.ctx, ast.Load):
            _refuse(node, f"{what} is not for kernels")
        self.visit(node.value)

    def visit_Call(self, node: ast.Call) -> None:
        if not isinstance(node.func, (ast.Name, ast.Attribute)):
            _refuse(node, "only functions that have a name can be called")
        if any(keyword.arg is None for keyword in node.keywords):
            _refuse(node, "`**` before a name is no Triton")
        self.generic_visit(node)


def _assigned(function: ast.FunctionDef) -> Iterator[str]:
    yield from (arg.arg for arg in function.args.args)
    for node in ast.walk(function):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            # a kernel that hides these would hide them from the checks above, too
            if node.id in ("tl", "triton", *_BUILTINS):
                _refuse(node, f"`{node.id}` can't be the name of a value")
            yield node.id
