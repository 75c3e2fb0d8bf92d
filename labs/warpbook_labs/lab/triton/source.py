"""What a learner's Triton file may say: kernels and constants, and no other Python."""

from __future__ import annotations

import ast
import warnings
from dataclasses import dataclass
from typing import NamedTuple

from warpbook_labs.lab.python.syntax import parse
from warpbook_labs.lab.triton import language
from warpbook_labs.lab.triton.body import (
    BadTriton,
    Body,
    dotted,
    refuse,
    refuse_elsewhere,
    refuse_own,
)

#: more would be no kernel that a person wrote
_MOST_NODES = 20_000
_IMPORTS = ("import triton", "import triton.language as tl")


@dataclass(frozen=True)
class Kernel:
    """One `@triton.jit` function."""

    name: str
    #: in their order, constants among them
    parameters: tuple[str, ...]
    #: parameters that are `tl.constexpr`
    constants: tuple[str, ...]
    line: int


class Translation(NamedTuple):
    """A source as it is run without a GPU."""

    #: by name
    kernels: dict[str, Kernel]
    #: of ours: constants, and a function for each kernel
    module: ast.Module


def read_kernels(source: str) -> dict[str, Kernel]:
    """Find the kernels of a source, by name.

    Raises:
        BadTriton: it says more than kernels and constants.
        NotHere: it says what only a GPU can do.
    """
    return translated(source).kernels


def translated(source: str) -> Translation:
    """Make a module of ours that does what a source says; it raises as `read_kernels`.

    What it calls is made in `engines/interpreter/triton/operations.py`.
    """
    try:
        return _translated(parsed(source))
    except RecursionError:
        raise BadTriton("The source is nested far deeper than any kernel.") from None


def _translated(tree: ast.Module) -> Translation:
    kernels: dict[str, Kernel] = {}
    names: set[str] = set()
    for statement in tree.body:
        if isinstance(statement, ast.FunctionDef):
            kernel = _kernel(statement)
            if kernel.name in names:
                refuse(statement, f"there is another `{kernel.name}` above")
            kernels[kernel.name] = kernel
            names.add(kernel.name)
        else:
            names |= _top_level(statement)
    if not kernels:
        raise BadTriton("There is no kernel: a function with @triton.jit above it.")
    module = ast.Module([], [])
    for statement in tree.body:
        if isinstance(statement, ast.FunctionDef):
            made: ast.stmt = ast.FunctionDef(
                statement.name,
                _parameters(statement),
                Body(statement, names).made(),
                [],
            )
        elif isinstance(statement, ast.Assign) and isinstance(
            statement.value, ast.Call
        ):
            (target,) = statement.targets
            assert isinstance(target, ast.Name)
            number = ast.literal_eval(statement.value.args[0])
            made = ast.Assign([ast.Name(target.id, ast.Store())], ast.Constant(number))
        else:
            continue
        module.body.append(
            ast.fix_missing_locations(ast.copy_location(made, statement))
        )
    return Translation(kernels, module)


def _parameters(function: ast.FunctionDef) -> ast.arguments:
    names = [ast.arg(argument.arg) for argument in function.args.args]
    defaults: list[ast.expr] = []
    defaults += [ast.Constant(ast.literal_eval(one)) for one in function.args.defaults]
    return ast.arguments([], names, None, [], [], None, defaults)


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


def _top_level(statement: ast.stmt) -> set[str]:
    """Check what stands outside of functions; give the names that it makes."""
    match statement:
        case ast.Import() | ast.ImportFrom():
            refuse_elsewhere(getattr(statement, "module", None) or "", statement)
            if ast.unparse(statement) not in _IMPORTS:
                wanted = " and ".join(f"`{line}`" for line in _IMPORTS)
                refuse(statement, f"a kernel's file imports only {wanted}")
            return set()
        case ast.Expr(value=ast.Constant()):
            return set()
        case ast.Assign(targets=[ast.Name() as target]):
            refuse_own(target.id, target)
            match statement.value:
                case ast.Call(args=[number], keywords=[]) as call:
                    if dotted(call.func) == "tl.constexpr" and _is_constant(number):
                        return {target.id}
            # a plain number could change, and Triton takes none from outside
            refuse(statement, "a constant is written NAME = tl.constexpr(128)")
    refuse(
        statement,
        "outside of kernels stand only constants, as NAME = tl.constexpr(128)",
    )


def _is_constant(value: ast.expr) -> bool:
    match value:
        case ast.Constant(value=bool() | int() | float()):
            return True
        case ast.UnaryOp(
            op=ast.USub(), operand=ast.Constant(value=int() | float() as number)
        ):
            return not isinstance(number, bool)
    return False


def _kernel(function: ast.FunctionDef) -> Kernel:
    for above in function.decorator_list:
        refuse_elsewhere(
            dotted(above.func if isinstance(above, ast.Call) else above), above
        )
    if len(function.decorator_list) != 1 or not _is_jit(function.decorator_list[0]):
        refuse(
            function,
            f"above `{function.name}` stands @triton.jit, and nothing else: numbers of "
            "a launch belong into the launch rule",
        )
    refuse_own(function.name, function)
    given = function.args
    if given.posonlyargs or given.kwonlyargs or given.vararg or given.kwarg:
        refuse(function, f"`{function.name}`: parameters are plain names")
    for default in given.defaults:
        if not _is_constant(default):
            refuse(function, f"`{function.name}`: a default must be a plain number")
    annotations = [argument.annotation for argument in given.args]
    for annotation in (*annotations, function.returns):
        if annotation is not None and _named(annotation) not in language.ANNOTATIONS:
            words = (
                "only `tl.constexpr` may stand behind a parameter, or a type of `tl`"
            )
            refuse(function, words)
    for argument in given.args:
        refuse_own(argument.arg, argument)
    names = tuple(arg.arg for arg in given.args)
    constants = tuple(
        name
        for name, annotation in zip(names, annotations, strict=True)
        if annotation is not None and _named(annotation) == "tl.constexpr"
    )
    return Kernel(function.name, names, constants, function.lineno)


def _named(annotation: ast.expr) -> str:
    """Give an annotation's name; "" where it is no name."""
    is_name = isinstance(annotation, ast.Name)
    return dotted(annotation) or (ast.unparse(annotation) if is_name else "")


def _is_jit(decorator: ast.expr) -> bool:
    """Tell `@triton.jit`, with options that change nothing of what is computed."""
    if isinstance(decorator, ast.Call):
        if decorator.args:
            return False
        for option in decorator.keywords:
            value = option.value
            parts = value.elts if isinstance(value, (ast.List, ast.Tuple)) else [value]
            are_plain = all(isinstance(part, ast.Constant) for part in parts)
            if option.arg not in language.JIT_OPTIONS or not are_plain:
                return False
        decorator = decorator.func
    return dotted(decorator) == "triton.jit"
