"""Sources with `@triton.autotune`: each configuration as a source of its own.

    @triton.autotune(configs=[triton.Config({"BLOCK": 256}, num_warps=4)], key=["n"])
    @triton.jit
    def add(x, out, n, BLOCK: tl.constexpr): ...

    # launch: add[ceil_div(n, BLOCK)](x, out, n)

A configuration's numbers are put into the launch rule, and the decorator is left out,
with all lines where they were. Every configuration must be right; a GPU is given the
first, since which is the fastest on it is not tried.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from warpbook_labs.errors import NotHere
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
    """Give the source without `autotune`, once for each configuration.

    Of several kernels that are tuned the n-th configurations go together.

    Raises:
        BadTriton: a decorator says what can't be read.
    """
    if "autotune" not in source:
        return (source,)
    tuned: dict[str, list[_Configuration]] = {}
    lines = source.split("\n")
    for function in parsed(source).body:
        if not isinstance(function, ast.FunctionDef):
            continue
        for decorator in function.decorator_list:
            if not _is(decorator, "triton.autotune"):
                continue
            tuned[function.name] = list(_configurations(decorator))
            # its lines are left empty, so that others keep their numbers
            for number in range(decorator.lineno - 1, decorator.end_lineno or 0):
                lines[number] = ""
    plain = "\n".join(lines)
    count = max((len(values) for values in tuned.values()), default=1)
    return tuple(_with(plain, tuned, number) for number in range(count))


def _is(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Call) and ast.unparse(node.func) == name


def _refuse(node: ast.AST, why: str) -> BadTriton:
    return BadTriton(f"{why}.", getattr(node, "lineno", 1))


def _configurations(decorator: ast.expr) -> Iterator[_Configuration]:
    assert isinstance(decorator, ast.Call)
    given: dict[str | None, ast.expr] = {
        keyword.arg: keyword.value for keyword in decorator.keywords
    }
    for by_place, value in zip(("configs", "key"), decorator.args, strict=False):
        given[by_place] = value
    for name in given:
        if name not in ("configs", "key"):
            line = decorator.lineno
            raise NotHere(f"autotune's `{name}` can't be checked here.", line)
    configs = given.get("configs")
    if not isinstance(configs, ast.List) or not configs.elts:
        raise _refuse(decorator, "autotune takes a list of `triton.Config(...)`")
    if len(configs.elts) > MOST_CONFIGURATIONS:
        raise _refuse(decorator, f"{MOST_CONFIGURATIONS} configurations may be")
    for config in configs.elts:
        yield _configuration(config)


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
