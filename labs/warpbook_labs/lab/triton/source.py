"""What a learner's Triton file may say: kernels and constants, and no other Python."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from warpbook_labs.errors import NotHere
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
#: modules that a file may import, by the names that the language has for them
_MODULES = {
    "triton": "triton",
    "triton.language": "tl",
    "triton.language.math": "tl.math",
}
_OF_TRITON = "triton." + " triton.".join(
    "Config autotune cdiv heuristics jit language next_power_of_2".split()
)
_IMPORTED = frozenset(_OF_TRITON.split()) | language.CALLED | language.VALUES
_IMPORTED |= language.RANGES | language.ANNOTATIONS
_Number = bool | int | float


@dataclass(frozen=True)
class Kernel:
    """One `@triton.jit` function."""

    name: str
    #: in their order, constants among them
    parameters: tuple[str, ...]
    #: parameters that are `tl.constexpr`
    constants: tuple[str, ...]
    line: int
    #: as texts, of parameters that have one
    defaults: Mapping[str, str]


class Translation(NamedTuple):
    """A source as it is run without a GPU."""

    #: by name
    kernels: dict[str, Kernel]
    #: of ours: constants, and a function for each kernel
    module: ast.Module
    #: constants outside of kernels
    numbers: dict[str, _Number]


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
    functions: list[tuple[ast.FunctionDef, ast.arguments]] = []
    constants: dict[str, _Number] = {}
    plain: dict[str, _Number] = {}
    module = ast.Module([], [])
    for statement in tree.body:
        if isinstance(statement, ast.FunctionDef):
            parameters = _parameters(statement, constants | plain)
            kernel = _kernel(statement, parameters)
            if kernel.name in kernels or kernel.name in constants | plain:
                refuse(statement, f"there is another `{kernel.name}` above")
            kernels[kernel.name] = kernel
            functions.append((statement, parameters))
        elif not _is_no_work(statement):
            name, number, is_constexpr = _constant(statement)
            if name in kernels:
                refuse(statement, f"there is another `{name}` above")
            constants.pop(name, None)
            plain.pop(name, None)
            (constants if is_constexpr else plain)[name] = number
    if not kernels:
        raise BadTriton("There is no kernel: a function with @triton.jit above it.")
    for name, number in constants.items():
        made: ast.stmt = ast.Assign([ast.Name(name, ast.Store())], ast.Constant(number))
        _append(module, made, tree.body[0])
    for function, parameters in functions:
        body = Body(function, kernels.keys() | constants.keys(), plain).made()
        made = ast.FunctionDef(function.name, parameters, body, [])
        _append(module, made, function)
    return Translation(kernels, module, constants | plain)


def _append(module: ast.Module, made: ast.stmt, stands_for: ast.stmt) -> None:
    module.body.append(ast.fix_missing_locations(ast.copy_location(made, stands_for)))


def _parameters(
    function: ast.FunctionDef, numbers: Mapping[str, _Number]
) -> ast.arguments:
    """Return parameters with defaults, which are numbers or constants from above."""
    names = [ast.arg(argument.arg) for argument in function.args.args]
    defaults: list[ast.expr] = []
    for default in function.args.defaults:
        if isinstance(default, ast.Name) and default.id in numbers:
            defaults.append(ast.Constant(numbers[default.id]))
        elif _is_number(default) or isinstance(default, ast.Constant):
            defaults.append(ast.Constant(ast.literal_eval(default)))
        elif dotted(default) in language.VALUES:
            value = ast.Name(".value", ast.Load())
            defaults.append(ast.Call(value, [ast.Constant(dotted(default))], []))
        else:
            refuse(function, f"`{function.name}`: a default must be a plain number")
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
    known: dict[str, str] = {}
    for statement in tree.body:
        if isinstance(statement, ast.Import | ast.ImportFrom):
            known |= _imported(statement)
    try:
        _Spelled(known).visit(tree)
    except RecursionError:
        raise BadTriton("The source is nested far deeper than any kernel.") from None
    return tree


def _imported(statement: ast.Import | ast.ImportFrom) -> dict[str, str]:
    """Give the names that an import of Triton's makes, and what each stands for."""
    known: dict[str, str] = {}
    module = getattr(statement, "module", None) or ""
    for alias in statement.names:
        name = f"{module}.{alias.name}".lstrip(".")
        if name.partition(".")[0] != "triton":
            continue
        refuse_elsewhere(name, statement)
        short = f"{_MODULES[module]}.{alias.name}" if module in _MODULES else ""
        refuse_elsewhere(short, statement)
        if name not in _MODULES and short not in _IMPORTED:
            words = (
                f"`{name}` can't be checked here: a kernel's file imports only what "
            )
            raise NotHere(words + "is of a kernel.", statement.lineno)
        stands_for = _MODULES.get(name, short)
        if isinstance(statement, ast.Import) and alias.asname is None:
            known["triton"] = "triton"
        else:
            known[alias.asname or alias.name] = stands_for
    return known


class _Spelled(ast.NodeTransformer):
    """Names all of Triton as `import triton` and `import triton.language as tl` do."""

    def __init__(self, known: Mapping[str, str]) -> None:
        self._known = known
        #: names that the function gives a value, which are no imported ones there
        self._own: set[str] = set()

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        self._refuse_imported(node.name, node)
        for part in ast.walk(node):
            if isinstance(part, ast.arg):
                self._own.add(part.arg)
            elif isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
                self._own.add(part.id)
        self.generic_visit(node)
        self._own = set()
        return node

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id in self._own:
            return node
        if not isinstance(node.ctx, ast.Load):
            self._refuse_imported(node.id, node)
            return node
        stands_for = self._known.get(node.id)
        if stands_for is None:
            if node.id in _MODULES.values():
                module = {"tl": "triton.language as tl"}.get(node.id, node.id)
                refuse(node, f"`{node.id}` is not imported: write `import {module}`")
            return node
        first, *others = stands_for.split(".")
        made: ast.expr = ast.copy_location(ast.Name(first, node.ctx), node)
        for name in others:
            made = ast.copy_location(ast.Attribute(made, name, node.ctx), node)
        return made

    def _refuse_imported(self, name: str, node: ast.AST) -> None:
        if name in self._known:
            refuse(node, f"`{name}` can't be the name of a value: it is imported")


def _is_no_work(statement: ast.stmt) -> bool:
    """Return whether it is an import or a text, of which nothing is made."""
    match statement:
        case ast.Import() | ast.ImportFrom():
            module = getattr(statement, "module", None) or statement.names[0].name
            if module.partition(".")[0] != "triton":
                words = "a kernel's file imports only `triton` and `triton.language`."
                raise NotHere(words, statement.lineno)
            return True
        case ast.Expr(value=ast.Constant()):
            return True
    return False


def _constant(statement: ast.stmt) -> tuple[str, _Number, bool]:
    """Return the name and number of a constant, and whether kernels may read it.

    Of a plain number, annotated or not, Triton's kernels read nothing but defaults.
    """
    match statement:
        case ast.AnnAssign(target=ast.Name() as target, value=ast.expr() as value) if (
            dotted(statement.annotation) == "tl.constexpr"
        ):
            pass
        case ast.Assign(targets=[ast.Name() as target], value=value):
            pass
        case _:
            refuse(
                statement,
                "outside of kernels stand only constants, as NAME = tl.constexpr(128)",
            )
    refuse_own(target.id, target)
    match value:
        case ast.Call(args=[number], keywords=[]) if _is_number(number):
            if dotted(value.func) == "tl.constexpr":
                return target.id, ast.literal_eval(number), True
    if not _is_number(value):
        refuse(statement, "a constant is written NAME = tl.constexpr(128)")
    return target.id, ast.literal_eval(value), False


def _is_number(value: ast.expr) -> bool:
    match value:
        case ast.Constant(value=bool() | int() | float()):
            return True
        case ast.UnaryOp(
            op=ast.USub(), operand=ast.Constant(value=int() | float() as number)
        ):
            return not isinstance(number, bool)
    return False


def _kernel(function: ast.FunctionDef, parameters: ast.arguments) -> Kernel:
    for above in function.decorator_list:
        name = dotted(above.func if isinstance(above, ast.Call) else above)
        refuse_elsewhere(name, above)
        if name not in ("", "triton.jit", "triton.autotune"):
            words = f"`@{name}` is not supported without a GPU."
            raise NotHere(words, above.lineno)
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
    with_default = names[len(names) - len(parameters.defaults) :]
    texts = map(ast.unparse, parameters.defaults)
    defaults = dict(zip(with_default, texts, strict=True))
    return Kernel(function.name, names, constants, function.lineno, defaults)


def _named(annotation: ast.expr) -> str:
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
