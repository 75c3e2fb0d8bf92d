"""What `%%gpuprof` does to source: loops around a cell, and one line of code."""

from __future__ import annotations

import argparse
import ast
import copy
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from IPython.core.error import UsageError

#: an option or its value, which quotes may hold together
_WORD = re.compile(r"""(?:(?:--[a-z-]+=)?(?:'[^']*'|"[^"]*")|\S*)(?=\s|$)""")
#: an option with a value in quotes, which IPython would split at its spaces
_WITH_QUOTED = re.compile(r"""(?<!\S)(--[a-z-]+)=(?=['"])""")


def repeated(tree: ast.Module, condition: str) -> ast.Module:
    """Put a copy of a cell's statements in a loop before them.

    The statements themselves stay as they are, so that the last run shows the last
    expression. Each keeps its line.
    """
    first = [statement for statement in tree.body if _is_future(statement)]
    body = [statement for statement in tree.body if not _is_future(statement)]
    if not body:
        return tree
    loop = ast.parse(f"while {condition}: pass").body[0]
    for node in ast.walk(loop):
        ast.copy_location(node, body[0])
    assert isinstance(loop, ast.While)
    loop.body = copy.deepcopy(body)
    tree.body = [*first, loop, *body]
    return tree


def joined(tree: ast.Module) -> ast.Module:
    """Make one statement of all but the last, whose value IPython shows.

    IPython compiles each statement of a cell by itself as it comes to it. That takes
    longer than many a statement, is no part of a run in a loop, and would be charged to
    the line before.
    """
    first = [statement for statement in tree.body[:-1] if _is_future(statement)]
    middle = [statement for statement in tree.body[:-1] if not _is_future(statement)]
    if middle:
        whole = ast.If(ast.Constant(True), middle, [])
        ast.copy_location(whole.test, middle[0])
        first.append(ast.copy_location(whole, middle[0]))
    tree.body = [*first, *tree.body[-1:]]
    return tree


def marked(tree: ast.Module, mark: str) -> ast.Module:
    """Have a cell say which line it comes to, before each of its statements.

    Bodies of functions and classes stay as they are: what they take is their caller's,
    and a compiler that reads them (torch.compile, numba, Triton) finds what was typed.

    Args:
        tree: the cell.
        mark: "name.method" of what is called with each line's number.
    """
    tree.body = _marked(tree.body, mark, None)
    return tree


def _marked(
    statements: Sequence[ast.stmt], mark: str, loop: ast.stmt | None
) -> list[ast.stmt]:
    with_marks: list[ast.stmt] = []
    for statement in statements:
        if isinstance(statement, ast.Continue) and loop is not None:
            # what follows is the loop's own line: the next item, the condition
            with_marks.append(_mark(loop, mark))
        elif not _is_future(statement):
            with_marks.append(_mark(statement, mark))
        if isinstance(statement, (ast.For, ast.AsyncFor, ast.While)):
            statement.body = [
                *_marked(statement.body, mark, statement),
                _mark(statement, mark),
            ]
            statement.orelse = _marked(statement.orelse, mark, loop)
        elif not isinstance(statement, _KEPT):
            for block in _blocks(statement):
                block[:] = _marked(block, mark, loop)
        with_marks.append(statement)
    return with_marks


_KEPT = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def _blocks(statement: ast.stmt) -> Iterator[list[ast.stmt]]:
    """Give the blocks of statements in an `if`, a `with`, a `try`, a `match`."""
    for name in ("body", "orelse", "finalbody"):
        if block := getattr(statement, name, None):
            yield block
    for name in ("handlers", "cases"):
        for part in getattr(statement, name, ()):
            yield part.body


def _mark(statement: ast.stmt, mark: str) -> ast.stmt:
    runs, _, at = mark.partition(".")
    function = ast.Attribute(ast.Name(runs, ast.Load()), at, ast.Load())
    call = ast.Call(function, [ast.Constant(statement.lineno)], [])
    return ast.fix_missing_locations(ast.copy_location(ast.Expr(call), statement))


def _is_future(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.ImportFrom) and statement.module == "__future__"


def split_line(line: str, actions: Sequence[argparse.Action]) -> tuple[str, str]:
    """Tell the options of a line magic from the code that follows them."""
    by_name = {name: option for option in actions for name in option.option_strings}
    options: list[str] = []
    rest = line.strip()
    while rest.startswith("-"):
        word, rest = _next_word(rest)
        if word == "--":
            break
        options.append(word)
        action = by_name.get(word)
        if action is None or action.nargs == 0:
            continue
        is_optional = action.nargs == "?"
        if not is_optional or _is_value(action, _next_word(rest)[0]):
            value, rest = _next_word(rest)
            options.append(value)
    return " ".join(options), rest


def _is_value(action: argparse.Action, word: str) -> bool:
    """Return whether an option that may stand alone takes this word."""
    if not callable(action.type):
        return word in (action.choices or ())
    try:
        action.type(word)
    except argparse.ArgumentTypeError:
        return False
    return True


def with_values_apart(options: str) -> str:
    """Write `--save="a b"` as `--save "a b"`, which IPython holds together."""
    return _WITH_QUOTED.sub(r"\1 ", options)


def _next_word(line: str) -> tuple[str, str]:
    """Take the first word off."""
    match = _WORD.match(line)
    end = match.end() if match else 0
    return line[:end], line[end:].lstrip()


def run_line(
    shell: Any, code: str, names: dict[str, Any] | None = None
) -> Callable[[], Any]:
    """Give what runs code and gives its value.

    Args:
        shell: of the person.
        code: one line, or several.
        names: what a function that this is in can see; else the person's namespace.

    Raises:
        UsageError: the code does not compile, awaits, or sets names of a function.
    """
    name = "<%gpuprof>"
    try:
        tree = shell.compile.ast_parse(shell.transform_cell(code))
        value = None
        if tree.body and isinstance(tree.body[-1], ast.Expr):
            value = ast.Expression(tree.body.pop().value)
        if names is not None and not all(
            isinstance(statement, ast.Expr) for statement in tree.body
        ):
            raise UsageError(
                "%gpuprof in a function takes expressions, such as f(x): it can't set "
                "the function's names."
            )
        body = shell.compile(tree, name, "exec")
        last = shell.compile(value, name, "eval") if value is not None else None
    except SyntaxError as problem:
        remedy = ""
        if re.search(r"\b(await|async)\b", code):
            remedy = " To await, begin a cell with %%gpuprof."
        raise UsageError(f"%gpuprof {code}: {problem.msg}.{remedy}") from None
    scope = (shell.user_global_ns, shell.user_ns)
    if names is not None:
        # both, as functions and comprehensions within see globals alone
        scope = (names, names)

    def once() -> Any:
        exec(body, *scope)
        return None if last is None else eval(last, *scope)

    return once
