"""What turns of a loop computed, copied to the host at once by functions of an edit."""

from __future__ import annotations

from typing import Literal

from warpbook_profiler.advice.code.source_edit import SourceEdit

#: what stands for each result afterwards: a tensor of the host, with memory of its own
#: as it had, a number, or lists of numbers; "number or itself" of what is no tensor
Form = Literal["tensor", "number", "number or itself", "list"]

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
_FUNCTIONS: dict[Form, tuple[str, str, dict[str, str]]] = {
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
HELPERS = frozenset(name for name, _, _ in _FUNCTIONS.values())


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
            name, text, given = _FUNCTIONS[form]
            name = self._names[form] = self._edit.free_name(name)
            torch = self._edit.torch
            self.lines += text.format(name=name, torch=torch, **given).splitlines()
        return f"{self._names[form]}({values})"
