"""What a source is compiled to for a GPU, whichever language it is in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from warpbook_labs.compiler.cuda_headers import headers_for
from warpbook_labs.compiler.jobs import Compile, Compiled
from warpbook_labs.compiler.nvrtc import compile_to_ptx
from warpbook_labs.engines.interpreter.triton.jobs import CompileTriton
from warpbook_labs.engines.interpreter.triton.variants import compile_job
from warpbook_labs.engines.kernels.timing import Source
from warpbook_labs.gpu.driver import Device
from warpbook_labs.gpu.errors import DriverError
from warpbook_labs.lab.loader import LoadedLab
from warpbook_labs.lab.rules import rule_of
from warpbook_labs.sandbox import parent
from warpbook_labs.sandbox.work import Refused


def job_of(
    loaded: LoadedLab,
    source: str,
    architecture: str,
    sizes: Iterable[Mapping[str, int]],
) -> Compile | CompileTriton:
    """Say what the jail has to compile.

    Args:
        loaded: the lab.
        source: in the lab's language.
        architecture: such as "sm_90".
        sizes: of all cases that it will be launched with.

    Raises:
        BadRule: the launch rule can't be followed.
    """
    if loaded.lab.language != "triton":
        return Compile(source, architecture, headers=headers_for(source))
    rule = rule_of(loaded.lab.language, source)
    return compile_job(loaded, rule, source, sizes, architecture)


def image_of(compiled: Compiled) -> bytes:
    """Give what the trusted process is sent: a cubin, or PTX to be assembled there."""
    return compiled.cubin or compiled.ptx.encode() + b"\0"


def _cubin(source: str, architecture: str) -> bytes:
    return compile_to_ptx(source, architecture, headers=headers_for(source)).cubin


def own_source(device: Device, loaded: LoadedLab, source: str) -> Source:
    """Compile one of the lab's own sources for its timed sizes.

    Raises:
        DriverError: it can't be compiled.
        CompileError: it can't be compiled.
    """
    rule = rule_of(loaded.lab.language, source)
    if loaded.lab.language != "triton":
        return Source(rule, _cubin(source, device.architecture))
    sizes = loaded.lab.speed.sizes if loaded.lab.speed else {}
    outcome = parent.run(job_of(loaded, source, device.architecture, [sizes]))
    if not isinstance(outcome.result, Compiled):
        told = outcome.result
        words = told.message if isinstance(told, Refused) else outcome.message
        raise DriverError(f"A source of the lab does not compile: {words}")
    return Source(rule, device.assembled(image_of(outcome.result)))
