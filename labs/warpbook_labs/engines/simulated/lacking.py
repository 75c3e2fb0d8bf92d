"""Tells what PyTorch has and the simulated GPU lacks from what a learner did wrong.

PyTorch says it in words about its own parts: a build for the CPU has no GPU at all.
"""

from __future__ import annotations

import contextlib
import re
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

from warpbook_labs.errors import Missing

#: what PyTorch's C++ and Python say where a build has no GPU, or no such kernel
_WORDS = re.compile(
    r"compiled with(out)? CUDA|without ATen_cuda|dummy base class|device not recognized"
    r"|not linked with|bad optional access|No CUDA GPUs|NVIDIA driver|CUDAHooks"
    r"|Could not run '|not implemented for '|aten::\w+\(\) expected|/dev/urandom"
)
#: how these name it
_NAMED = re.compile(
    r"(aten::\w+)|\"(\w+)\" not implemented|base class (\w+)|(torch\.[\w.]*\w)"
)
LACKS = "The simulated GPU has nothing for what is asked of PyTorch here."
#: parts of PyTorch that ask the GPU
_OF_THE_GPU = ("torch.cuda", "torch.accelerator", "torch.backends.cu")
_OURS = "warpbook_labs.engines.simulated.pytorch"
#: said of how something is used, too; all else is raised by code whose GPU is not there
_OF_USE = (
    *(RuntimeError, NotImplementedError, ValueError, TypeError, IndexError),
    AssertionError,
)


def lacking(problem: BaseException, source_name: str) -> str:
    """Say what the simulated GPU lacks, if that is why something was raised."""
    if isinstance(problem, Missing):
        return str(problem)
    if isinstance(problem, ImportError) and (problem.name or "").startswith("torch."):
        return f"`{problem.name}` can't be loaded in the checker."
    names = _called(problem, source_name)
    is_within = any(name.startswith((*_OF_THE_GPU, _OURS)) for name in names)
    if isinstance(problem, _OF_USE) or not isinstance(problem, Exception):
        is_within = False
    # a class of the learner's may have any words
    words = str(problem) if type(problem) in _OF_USE else ""
    is_of_cpp = type(problem) is AttributeError and "'torch._C'" in str(problem)
    if not (is_of_cpp or is_within or _WORDS.search(words)):
        return ""
    named = _NAMED.search(words)
    theirs = [name for name in names if not name.startswith(_OURS)]
    if theirs:
        name = theirs[0]
    elif named is not None:
        name = next(filter(None, named.groups()))
    else:
        return LACKS
    return f"The simulated GPU has no `{name}`."


def leave_out_compiler(torch: Any) -> None:
    """Stand in for PyTorch's compiler, which a first call of a mode loads for 2 s.

    It is only asked to leave a function alone. `torch.compile` with the backend
    "eager" calls the function itself; others could compile nothing in the jail.
    """

    def leave_alone(function: Any = None, *_: Any, **__: Any) -> Any:
        return function if function is not None else leave_alone

    def compile_nothing(
        model: Any = None, *, backend: Any = "inductor", **_: Any
    ) -> Any:
        if backend != "eager":
            raise Missing(
                "The checker has no compiler for `torch.compile`. Call the function as "
                'it is, or say backend="eager".'
            )
        return model if model is not None else leave_alone

    stand_in: Any = ModuleType("torch._dynamo")
    stand_in.disable = stand_in.graph_break = leave_alone
    stand_in.compiled_autograd = SimpleNamespace(_disable=contextlib.nullcontext)
    stand_in.config = SimpleNamespace(
        error_on_nested_fx_trace=True,
        patch=lambda *_, **__: contextlib.nullcontext(),
    )
    sys.modules["torch._dynamo"] = torch._dynamo = stand_in
    torch.compile = compile_nothing
    # of which a setting is made where algorithms are to be deterministic
    inductor: Any = ModuleType("torch._inductor")
    inductor.config = ModuleType("torch._inductor.config")
    sys.modules["torch._inductor"] = torch._inductor = inductor
    sys.modules["torch._inductor.config"] = inductor.config


def _called(problem: BaseException, source_name: str) -> list[str]:
    """Name the functions of PyTorch that the learner's last line is in."""
    names: list[str] = []
    trace = problem.__traceback__
    while trace is not None:
        code, module = trace.tb_frame.f_code, _module_of(trace.tb_frame.f_globals)
        if code.co_filename == source_name:
            names = []
        elif module.startswith(("torch.", _OURS)):
            # Python 3.10 knows no more than the last part of a name
            name = getattr(code, "co_qualname", code.co_name)
            if "<" not in name and "._" not in f"{module}.{name.split('.__')[0]}":
                names.append(f"{module}.{name.split('.__')[0]}")
        trace = trace.tb_next
    return names


def _module_of(names: dict[str, Any]) -> str:
    return str(names.get("__name__", ""))
