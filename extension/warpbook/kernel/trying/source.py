"""A cell's body as code that runs again, without a cell around it."""

from __future__ import annotations

import ast
from collections.abc import Callable
from types import CodeType
from typing import Any

from warpbook.kernel.trying.refusals import NotIsolated


class Body:
    """The statements of a cell, read as IPython does.

    Magics become calls of `get_ipython()`.
    """

    def __init__(self, shell: Any, code: str) -> None:
        source = shell.transform_cell(code)
        self._compile = shell.compile
        # under the cell's own name, where Triton and torch.compile look for its source
        self._filename = shell.compile.cache(
            source, shell.execution_count, raw_code=code
        )
        self._tree: ast.Module = shell.compile.ast_parse(source)
        self.namespace: dict[str, Any] = shell.user_ns

    @property
    def names(self) -> set[str]:
        """Return the names whose values it can get at.

        What it binds anew before it reads it, whatever happens, is not among them.
        """
        read: set[str] = set()
        bound: set[str] = set()
        for statement in self._tree.body:
            named, then = _names(statement), set()
            if isinstance(statement, ast.Assign):
                plain = [to for to in statement.targets if isinstance(to, ast.Name)]
                others = [to for to in statement.targets if to not in plain]
                named = set().union(*map(_names, (statement.value, *others)))
                then = {to.id for to in plain}
            read |= named - bound
            bound |= then - read
        return read

    def codes(self, tree: ast.Module | None = None) -> tuple[CodeType, CodeType]:
        """Return the compiled statements, and the last expression.

        Args:
            tree: what to compile in the body's place.

        Raises:
            NotIsolated: it awaits something.
        """
        statements = list((tree or self._tree).body)
        last: ast.expr = ast.Constant(None)
        if statements and isinstance(shown := statements[-1], ast.Expr):
            last = shown.value
            del statements[-1]
        value = ast.fix_missing_locations(ast.Expression(last))
        try:
            return (
                self._compile(ast.Module(statements, []), self._filename, "exec"),
                self._compile(value, self._filename, "eval"),
            )
        except SyntaxError as problem:
            # it has run, as IPython runs a cell
            raise NotIsolated("awaits something", problem.lineno) from None

    def runnable(self, tree: ast.Module | None = None) -> Callable[[], Any]:
        """Return what runs it, or another tree; it returns the last expression."""
        statements, last = self.codes(tree)

        def run() -> Any:
            exec(statements, self.namespace)
            return eval(last, self.namespace)

        return run

    def without_waiting(self) -> Callable[[], Any]:
        """Return a body whose copies to a GPU return at once.

        Only `.to(DEVICE)` and `.cuda()` in the cell's own lines are changed, and only
        where the device is known to be a GPU: a copy to the host must be waited for.
        """
        tree = ast.parse(ast.unparse(self._tree))
        for old, new in zip(_calls(self._tree), _calls(tree), strict=True):
            ast.copy_location(new, old)
            function = new.func
            # by position it is the second or third argument
            if not isinstance(function, ast.Attribute) or len(new.args) > 1:
                continue
            if any(word.arg in (None, "non_blocking") for word in new.keywords):
                continue
            is_cuda = function.attr == "cuda" and not new.args
            if is_cuda or (function.attr == "to" and self._names_a_gpu(new)):
                new.keywords.append(ast.keyword("non_blocking", ast.Constant(True)))
        return self.runnable(ast.fix_missing_locations(tree))

    def _names_a_gpu(self, call: ast.Call) -> bool:
        words = [word.value for word in call.keywords if word.arg == "device"]
        for value in (*call.args, *words):
            device: object = None
            if isinstance(value, ast.Constant):
                device = value.value
            elif isinstance(value, ast.Name):
                device = self.namespace.get(value.id)
            # torch.device writes itself as its own name
            if str(device).partition(":")[0] == "cuda":
                return True
        return False


def _names(tree: ast.AST) -> set[str]:
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}


def _calls(tree: ast.AST) -> list[ast.Call]:
    return [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
