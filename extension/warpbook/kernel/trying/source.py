"""A cell's body as code that runs again, without a cell around it."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import CodeType
from typing import Any


@dataclass(frozen=True)
class Body:
    """The statements of a cell, compiled once."""

    tree: ast.Module
    #: of the frames that run it
    filename: str
    _compiler: Callable[[ast.AST, str, str], CodeType]

    @property
    def names(self) -> frozenset[str]:
        """Give the names whose values it can get at.

        What it binds anew before it reads it, whatever happens, is not among them.
        """
        read: set[str] = set()
        bound: set[str] = set()
        for statement in self.tree.body:
            first, then = _in_order(statement)
            for node in first:
                named = _names(node)
                read |= named - bound
            bound |= {name for name in then if name not in read}
        return frozenset(read)

    def compiled(self, tree: ast.Module | None = None) -> RunnableBody:
        """Make it runnable, or another tree in its place."""
        statements = list((tree or self.tree).body)
        last = None
        if statements and isinstance(statements[-1], ast.Expr):
            value = ast.Expression(statements[-1].value)
            last = self._compiler(value, self.filename, "eval")
            del statements[-1]
        body = self._compiler(ast.Module(statements, []), self.filename, "exec")
        return RunnableBody(body, last)


@dataclass(frozen=True)
class RunnableBody:
    """Code that runs in the person's namespace."""

    _statements: CodeType
    _last: CodeType | None

    def run(self, namespace: dict[str, Any]) -> Any:
        """Run it; give the last expression's value, or None without one."""
        exec(self._statements, namespace)
        if self._last is None:
            return None
        return eval(self._last, namespace)


def read_body(shell: Any, code: str) -> Body:
    """Read a cell as IPython does: magics become calls of `get_ipython()`."""
    source = shell.transform_cell(code)
    # under the cell's own name, where Triton and torch.compile look for its source
    filename = shell.compile.cache(source, shell.execution_count, raw_code=code)
    return Body(shell.compile.ast_parse(source), filename, shell.compile)


def _in_order(statement: ast.stmt) -> tuple[list[ast.AST], list[str]]:
    """Give what a statement reads, and the names that it then binds in any case."""
    if isinstance(statement, ast.Assign):
        plain = [node for node in statement.targets if isinstance(node, ast.Name)]
        others = [node for node in statement.targets if node not in plain]
        return [statement.value, *others], [node.id for node in plain]
    if isinstance(statement, ast.With) and len(statement.items) == 1:
        (item,) = statement.items
        if isinstance(item.optional_vars, ast.Name):
            # the body sees what was bound
            name = item.optional_vars.id
            body = [node for part in statement.body for node in ast.walk(part)]
            inner = [node for node in body if getattr(node, "id", None) != name]
            return [item.context_expr, *_leaves(inner)], [name]
    return [statement], []


def _leaves(nodes: list[ast.AST]) -> list[ast.AST]:
    return [node for node in nodes if isinstance(node, ast.Name)]


def _names(tree: ast.AST) -> set[str]:
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}


def copies_without_waiting(body: Body, namespace: Mapping[str, Any]) -> ast.Module:
    """Have copies to a GPU that the body asks for return at once.

    Only `.to(DEVICE)` and `.cuda()` in the cell's own lines are changed, and only where
    the device is known to be a GPU: a copy to the host must be waited for.
    """
    tree = ast.parse(ast.unparse(body.tree))
    for old, new in zip(_calls(body.tree), _calls(tree), strict=True):
        ast.copy_location(new, old)
        function = new.func
        if not isinstance(function, ast.Attribute) or _has_non_blocking(new):
            continue
        is_cuda = function.attr == "cuda" and not new.args
        if is_cuda or (function.attr == "to" and _names_a_gpu(new, namespace)):
            new.keywords.append(ast.keyword("non_blocking", ast.Constant(True)))
    return ast.fix_missing_locations(tree)


def _calls(tree: ast.AST) -> list[ast.Call]:
    return [node for node in ast.walk(tree) if isinstance(node, ast.Call)]


def _has_non_blocking(call: ast.Call) -> bool:
    # by position it is the second or third argument
    return len(call.args) > 1 or any(
        word.arg in (None, "non_blocking") for word in call.keywords
    )


def _names_a_gpu(call: ast.Call, namespace: Mapping[str, Any]) -> bool:
    words = [word.value for word in call.keywords if word.arg == "device"]
    for value in (*call.args, *words):
        device: object = None
        if isinstance(value, ast.Constant):
            device = value.value
        elif isinstance(value, ast.Name):
            device = namespace.get(value.id)
        # torch.device writes itself as its own name
        if str(device).partition(":")[0] == "cuda":
            return True
    return False
