"""What the simulated GPU has not, said in words."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from functools import wraps
from typing import Any, NoReturn

from warpbook_labs.simulated.recording import recorder

#: in Python's own words
_MISSING_OPTION = re.compile(r"unexpected keyword argument '(\w+)'")
#: what PyTorch takes as NumPy does, in those of its functions that C++ parses
_SPELLINGS = {"axis": "dim", "keepdims": "keepdim"}
_IN_PYTHON = ("norm", "split", "unflatten")
#: a way on, where there is one
_INSTEAD = {
    "torch.Tensor(...)": "Use `torch.tensor` or `torch.empty`. ",
    "torch.Tensor.bfloat16": "NumPy has no such numbers: use x.half(). ",
    "torch.Tensor.storage": "Use `x.data_ptr()` to compare memory. ",
    "torch.Tensor.untyped_storage": "Use `x.data_ptr()` to compare memory. ",
    "torch.Tensor.masked_select": "Use `torch.where`. ",
    "torch.Tensor.nonzero": "Use `torch.where` with three arguments. ",
    "torch.Tensor.scatter_": "Use `x[index] = rows` or `x.index_copy_`. ",
    "torch.bfloat16": "NumPy has no such numbers: use torch.float16. ",
    "torch.compile": "Call the function itself, or use `torch.cuda.graph`. ",
    "torch.cuda.Stream.priority_range": "There are the priorities 0 and -1. ",
    "torch.cuda.make_graphed_callables": "Use `torch.cuda.graph`. ",
    "torch.nn.Embedding(...)": "Use `nn.Embedding.from_pretrained` or `x[index]`. ",
    "torch.nn.Linear": "Use `torch.nn.functional.linear` with tensors. ",
    "torch.nn.Module": "Write functions of tensors. ",
    "torch.nn.Sequential": "Write functions of tensors. ",
    "torch.nonzero": "Use `torch.where` with three arguments. ",
    "torch.randint": "Use `torch.arange`, or what the lab hands in. ",
    "torch.scatter": "Use `x[index] = rows` or `x.index_copy_`. ",
    **dict.fromkeys(
        ("torch.amp", "torch.autocast", "torch.cuda.amp", "torch.cuda.autocast"),
        "Give tensors their dtype: x.half(). ",
    ),
}


class Missing(AttributeError):
    """PyTorch has it, the simulated GPU has not."""


def refuse(name: str, instead: str = "") -> NoReturn:
    """Say that something is not there, and perhaps what to do instead.

    Raises:
        Missing: always.
    """
    line = recorder.line()
    where = f" (line {line})" if line else ""
    raise Missing(
        f"The simulated GPU has no {name}{where}. {instead or _INSTEAD.get(name, '')}"
        "It has streams, events, graphs, copies and common operations; a GPU has the "
        "whole of PyTorch."
    )


class Told:
    """A thing of PyTorch's that says in words what it has not."""

    #: as a learner calls it
    _spoken = ""

    def __getattr__(self, name: str) -> Any:
        """Say that it is not there."""
        if name.startswith("__"):
            raise AttributeError(name)
        refuse(f"{self._spoken}.{name}")


def telling(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Have it take PyTorch's spellings, and say which option is missing."""
    parameters = inspect.signature(function).parameters.values()
    variadic = [each.name for each in parameters if each.kind is each.VAR_POSITIONAL]
    names = [each.name for each in parameters]
    is_in_python = "nn.functional" in name or name.rpartition(".")[2] in _IN_PYTHON
    spellings = {
        other: ours
        for other, ours in _SPELLINGS.items()
        if ours in names and not is_in_python
    }

    @wraps(function)
    def call(*operands: Any, **options: Any) -> Any:
        if options:
            options = {spellings.get(key, key): each for key, each in options.items()}
            # sides may be one sequence by the name that PyTorch gives them
            for key in variadic:
                if key in options:
                    operands = (*operands, options.pop(key))
        try:
            return function(*operands, **options)
        except TypeError as error:
            missing = _MISSING_OPTION.search(str(error))
            if missing is None:
                raise
        refuse(f"`{missing[1]}` of {name}")

    return call
