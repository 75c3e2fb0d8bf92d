"""Python's own parser, for one thread at a time.

Up to Python 3.11.4 two threads that parse at once can end in a SystemError: both count
the depth of their recursion in one place (CPython issue 106905).
"""

from __future__ import annotations

import ast
import threading

_LOCK = threading.Lock()


def parse(source: str) -> ast.Module:
    """Parse a module.

    Raises:
        SyntaxError, ValueError, RecursionError, MemoryError: it is none.
    """
    with _LOCK:
        return ast.parse(source)


def parse_expression(source: str) -> ast.Expression:
    """Parse an expression.

    Raises:
        SyntaxError, ValueError, RecursionError, MemoryError: it is none.
    """
    with _LOCK:
        return ast.parse(source, mode="eval")
