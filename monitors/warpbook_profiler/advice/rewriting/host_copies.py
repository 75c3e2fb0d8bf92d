"""What code reads of the GPU, and functions of an edit that copy it for all turns."""

from __future__ import annotations

import ast
from typing import Literal

from warpbook_profiler.advice.code.source_edit import SourceEdit

#: what stands for each result afterwards: a tensor of the host, with memory of its own
#: as it had, a number, or lists of numbers; "number or itself" of what is no tensor
Form = Literal["tensor", "number", "number or itself", "list"]

#: methods that give the host a tensor's values, and functions that call one
_METHODS = frozenset("item tolist cpu numpy".split())
_FUNCTIONS = frozenset("float int bool str".split())
#: what prints, and methods of files and loggers
SHOWS = frozenset("print write info debug warning".split())
_ALIKE = """\
def {name}(values):
    kinds = {{(getattr(one, "dtype", 0), getattr(one, "shape", 0)) for one in values}}
    if len(kinds) == 1 and isinstance(values[0], {torch}.Tensor){limit}:
        return {torch}.stack(tuple(values)){flat}.tolist()
    return {others}"""
_TENSORS = """\
def {name}(values):
    kinds = {{(getattr(one, "dtype", None), one.__class__) for one in values}}
    if len(kinds) != 1 or not isinstance(values[0], {torch}.Tensor):
        return values
    if len({{one.shape for one in values}}) == 1:
        parts = {torch}.stack(tuple(values)).detach().cpu().unbind()
    else:
        whole = {torch}.cat([one.detach().flatten() for one in values]).cpu()
        parts = whole.split([one.numel() for one in values])
        parts = [part.view(one.shape) for part, one in zip(parts, values)]
    hosts = [{torch}.empty_like(one, device="cpu") for one in values]
    return [host.copy_(part) for host, part in zip(hosts, parts)]"""
_ONE = {"limit": " and values[0].numel() == 1", "flat": ".flatten()"}
_COPIES: dict[Form, tuple[str, str, dict[str, str]]] = {
    "tensor": ("on_host", _TENSORS, {}),
    "number": ("numbers", _ALIKE, {**_ONE, "others": "[one.item() for one in values]"}),
    "number or itself": ("numbers_or", _ALIKE, {**_ONE, "others": "values"}),
    "list": (
        "lists",
        _ALIKE,
        {"limit": "", "flat": "", "others": "[one.tolist() for one in values]"},
    ),
}
#: names of the functions
HELPERS = frozenset(name for name, _, _ in _COPIES.values())


def read_of(node: ast.AST) -> ast.expr | None:
    """Return the tensor that an expression reads, or prints."""
    match node:
        case ast.Call(func=ast.Attribute(attr=name, value=value)) if name in _METHODS:
            return read_of(value) or value
        case ast.Call(
            func=ast.Attribute(attr="to", value=value), args=[ast.Constant("cpu"), *_]
        ):
            return value
        case ast.Call(func=ast.Name(id=name), args=[value]) if name in _FUNCTIONS:
            return read_of(value) or value
        case ast.FormattedValue(value=value):
            return read_of(value) or value
    return None


def form_of(node: ast.AST) -> Form:
    """Return what a read makes of its tensor."""
    match node:
        case ast.Call(func=ast.Attribute(attr="item"), args=[]):
            return "number"
        case ast.Call(func=ast.Attribute(attr="tolist"), args=[]):
            return "list"
        case (
            ast.Call(func=ast.Name(id="float" | "int" | "bool"), args=[value])
            | ast.FormattedValue(value=value, conversion=-1)
        ) if read_of(value) is None:
            return "number or itself"
    return "tensor"


def is_print(node: ast.AST) -> bool:
    """Tell whether code is a call that prints, or logs."""
    match node:
        case ast.Call(func=ast.Name(id=name)):
            return name == "print"
        case ast.Call(func=ast.Attribute(attr=name)):
            return name in SHOWS
    return False


def formatted(node: ast.AST) -> list[ast.expr] | None:
    """Return what a part of a text, `format` or `%` writes; None for anything else."""
    match node:
        case ast.FormattedValue(value=value):
            return [value]
        case ast.Call(func=ast.Attribute(attr="format", value=ast.Constant(str()))):
            return [*node.args, *(one.value for one in node.keywords)]
        case ast.BinOp(left=ast.Constant(str()), op=ast.Mod(), right=right):
            return right.elts if isinstance(right, ast.Tuple) else [right]
    return None


def is_whole(form: Form) -> bool:
    """Tell whether a copy is what the read gives, so that nothing else is to read."""
    return form in ("number", "list")


class HostCopies:
    """The functions that one edit needs."""

    def __init__(self, edit: SourceEdit) -> None:
        """Begin without one."""
        self._edit = edit
        self._names: dict[Form, str] = {}
        #: of the code that defines them
        self.lines: list[str] = []

    def of(self, values: str, form: Form) -> str:
        """Write the results of all turns, of which `values` is code, in this form."""
        if form not in self._names:
            name, text, given = _COPIES[form]
            name = self._names[form] = self._edit.free_name(name)
            torch = self._edit.torch
            self.lines += text.format(name=name, torch=torch, **given).splitlines()
        return f"{self._names[form]}({values})"
