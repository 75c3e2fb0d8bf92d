"""Operations of CuPy and JAX in a cell's source, as functions that those compile."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from warpbook_profiler.advice.code.cell_code import CellCode, blocks
from warpbook_profiler.advice.code.fused_code import FusedCode, as_function, fused_code
from warpbook_profiler.advice.code.torch_code import PRODUCT, opaque_calls, steps
from warpbook_profiler.facts.traffic import only_passes, reduces

#: CuPy's names of what torch's traces call otherwise
_KERNELS = {
    "multiply": "mul",
    "subtract": "sub",
    "true_divide": "div",
    "absolute": "abs",
    "power": "pow",
    "negative": "neg",
    "greater": "gt",
    "less": "lt",
}
_JAX = frozenset("jnp jax lax".split())


def cupy_code(code: CellCode, chain: Sequence[str]) -> FusedCode | None:
    """Write a chain of CuPy's kernels for `cupy.fuse`; None where it is not sure."""
    names = {node.id for node in ast.walk(code.tree) if isinstance(node, ast.Name)}
    module = next((name for name in ("cp", "cupy") if name in names), None)
    if module is None:
        return None
    chain = [_KERNELS.get(name, name) for name in chain]
    fused = fused_code(code, chain, None, f"{module}.fuse()")
    if fused is None:
        return None
    # it takes what works element by element, and nothing else
    operators = [name for step in steps(_function(fused.code)) for name in step.names]
    is_elementwise = not any(
        name == PRODUCT or reduces(name) or not only_passes(name) for name in operators
    )
    return fused if operators and is_elementwise else None


def _function(source: str) -> ast.AST:
    """Return the function that is fused; the first one that has a decorator."""
    return next(
        node
        for node in ast.walk(CellCode(source).tree)
        if isinstance(node, ast.FunctionDef) and node.decorator_list
    )


def jax_code(code: CellCode) -> FusedCode | None:
    """Write the only statement that computes with JAX for `jax.jit`.

    Returns:
        None for none or several, and for one in which a name may be a size or an axis.
    """
    statements = list(_computing(code))
    if len(statements) != 1 or opaque_calls(code.tree):
        return None
    (statement,) = statements
    if any(step.is_opaque for step in steps(statement.value)):
        return None
    if any(_takes_a_setting(node) for node in ast.walk(statement.value)):
        return None
    text = as_function(code, statement.value, "jax.jit", "step")
    return FusedCode(statement.lineno, text) if text else None


def _computing(code: CellCode) -> Iterator[ast.Assign]:
    for block in blocks(code.tree):
        for statement in block.statements:
            if isinstance(statement, ast.Assign) and block.function is None:
                roots = {
                    node.id
                    for node in ast.walk(statement.value)
                    if isinstance(node, ast.Name)
                }
                if roots & _JAX and any(steps(statement.value)):
                    yield statement


def _takes_a_setting(node: ast.AST) -> bool:
    """Tell whether a name in it may be what a compiled function must know before."""
    settings: list[ast.AST] = []
    if isinstance(node, ast.Call):
        settings += [keyword.value for keyword in node.keywords]
        name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        if reduces(name) or not only_passes(name):
            settings += node.args[1:]
    elif isinstance(node, ast.Slice):
        settings.append(node)
    return any(isinstance(part, ast.Name) for one in settings for part in ast.walk(one))
