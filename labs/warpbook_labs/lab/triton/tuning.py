"""What a source has for kernels, once for each configuration of `@triton.autotune`.

    @triton.autotune(configs=[triton.Config({"BLOCK": 256}, num_warps=4)], key=["n"])
    @triton.jit
    def add(x, out, n, BLOCK: tl.constexpr): ...

    # launch: add[ceil_div(n, BLOCK)](x, out, n)

A configuration's numbers are put into the launch rule, and the decorator is left out,
with all lines where they were. So is what the file has for the host: other imports,
plain functions and classes. Every configuration must be right; a GPU is given the
first, since which is the fastest on it is not tried.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping

from warpbook_labs.errors import NotHere
from warpbook_labs.lab.python.syntax import parse_expression
from warpbook_labs.lab.triton.body import BadTriton
from warpbook_labs.lab.triton.source import parsed

#: that a source may have in all
MOST_CONFIGURATIONS = 16
_OPTIONS = ("num_warps", "num_stages")
_LAUNCH = re.compile(
    r"^([ \t]*#[ \t]*launch[ \t]*:[ \t]*)(\w+)([ \t]*\[)(.*)(\][ \t]*\()(.*)\)[ \t]*$",
    re.M,
)
_Configuration = dict[str, int]


def configured(source: str) -> tuple[str, ...]:
    """Give what a source has for kernels, once for each configuration of `autotune`.

    Of several kernels that are tuned the n-th configurations go together.

    Raises:
        BadTriton: a decorator says what can't be read.
        NotHere: it says what can't be checked.
    """
    tuned: dict[str, list[_Configuration]] = {}
    lists: dict[str, ast.expr] = {}
    lines = source.split("\n")

    def leave_out(node: ast.stmt | ast.expr) -> None:
        # its lines are left empty, so that others keep their numbers
        for number in range(node.lineno - 1, node.end_lineno or 0):
            lines[number] = ""

    for statement in parsed(source).body:
        if _is_of_host(statement):
            leave_out(statement)
            if isinstance(statement, ast.Assign):
                lists |= {
                    ast.unparse(name): statement.value for name in statement.targets
                }
        if not isinstance(statement, ast.FunctionDef):
            continue
        for decorator in statement.decorator_list:
            if _is(decorator, "triton.autotune"):
                tuned[statement.name] = list(_configurations(decorator, lists))
                leave_out(decorator)
    plain = "\n".join(lines)
    count = max((len(values) for values in tuned.values()), default=1)
    return tuple(_with(plain, tuned, number) for number in range(count))


def _is_of_host(statement: ast.stmt) -> bool:
    """Return whether it is what a file has beside kernels: never looked at here."""
    match statement:
        case ast.Import(names=names):
            return not any(name.name.partition(".")[0] == "triton" for name in names)
        case ast.ImportFrom(module=module):
            return (module or "").partition(".")[0] != "triton"
        case ast.FunctionDef(decorator_list=decorators):
            return not decorators
        case ast.Assign(value=value):
            known = (ast.Constant, ast.UnaryOp, ast.BinOp, ast.Name)
            is_call = isinstance(value, ast.Call)
            return not (
                isinstance(value, known) or is_call and _is(value, "tl.constexpr")
            )
    return isinstance(statement, ast.ClassDef | ast.If)


def _is(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Call) and ast.unparse(node.func) == name


def _refuse(node: ast.AST, why: str) -> BadTriton:
    return BadTriton(f"{why}.", getattr(node, "lineno", 1))


def _configurations(
    decorator: ast.expr, lists: Mapping[str, ast.expr]
) -> Iterator[_Configuration]:
    assert isinstance(decorator, ast.Call)
    # what else may be given decides how it is tuned, and no result
    named = {keyword.arg: keyword.value for keyword in decorator.keywords}
    given = decorator.args[0] if decorator.args else named.get("configs")
    if isinstance(given, ast.Name):
        given = lists.get(given.id)
    match given:
        case ast.List(elts=configs):
            pass
        case ast.ListComp():
            configs = _listed(given)
        case _:
            words = "autotune's configurations can be read of a list alone."
            raise NotHere(words, decorator.lineno)
    if not configs:
        raise _refuse(decorator, "autotune takes a list of `triton.Config(...)`")
    if len(configs) > MOST_CONFIGURATIONS:
        raise _refuse(decorator, f"{MOST_CONFIGURATIONS} configurations may be")
    for config in configs:
        yield _configuration(config)


def _listed(comprehension: ast.ListComp) -> list[ast.expr]:
    """Give what a comprehension over lists of numbers makes."""
    text, line = ast.unparse(comprehension.elt), comprehension.lineno
    made = [text]
    for loop in comprehension.generators:
        if (
            not isinstance(loop.target, ast.Name)
            or not isinstance(loop.iter, ast.List | ast.Tuple)
            or loop.ifs
            or len(made) * len(loop.iter.elts) > MOST_CONFIGURATIONS
        ):
            words = "autotune's configurations can't be read of this comprehension."
            raise NotHere(words, line)
        name = re.compile(rf"\b{loop.target.id}\b(?!\s*[=:'\"])")
        made = [
            name.sub(ast.unparse(number), one)
            for one in made
            for number in loop.iter.elts
        ]
    return [parse_expression(one).body for one in made]


def _configuration(node: ast.expr) -> _Configuration:
    words = 'a configuration is written triton.Config({"BLOCK": 256}, num_warps=4)'
    if not isinstance(node, ast.Call) or not _is(node, "triton.Config"):
        raise _refuse(node, words)
    if len(node.args) != 1 or not isinstance(node.args[0], ast.Dict):
        raise _refuse(node, words)
    numbers: _Configuration = {}
    pairs = zip(node.args[0].keys, node.args[0].values, strict=True)
    named = [(ast.Constant(keyword.arg), keyword.value) for keyword in node.keywords]
    for key, value in (*pairs, *named):
        name = key.value if isinstance(key, ast.Constant) else None
        number = value.value if isinstance(value, ast.Constant) else None
        if not isinstance(name, str) or not name.isidentifier():
            raise _refuse(node, words)
        if not isinstance(number, int):
            raise _refuse(node, f"`{name}` must be a whole number")
        numbers[name] = int(number)
    unknown = {keyword.arg for keyword in node.keywords} - set(_OPTIONS)
    if unknown:
        name = min(map(str, unknown))
        words = f"a configuration's `{name}` can't be checked here"
        raise NotHere(f"{words}.", node.lineno)
    return numbers


def _with(source: str, tuned: dict[str, list[_Configuration]], number: int) -> str:
    """Put the numbers of one configuration into the launch rule."""

    def filled_in(match: re.Match[str]) -> str:
        mark, kernel, opens, grid, between, arguments = match.groups()
        configurations = tuned.get(kernel)
        if not configurations:
            return match[0]
        chosen = configurations[number % len(configurations)]
        for name, value in chosen.items():
            grid = re.sub(rf"\b{name}\b", str(value), grid)
        given = [arguments, *(f"{name}={value}" for name, value in chosen.items())]
        inside = ", ".join(argument for argument in given if argument.strip())
        return f"{mark}{kernel}{opens}{grid}{between}{inside})"

    return _LAUNCH.sub(filled_in, source)
