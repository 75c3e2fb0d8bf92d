"""What the jail compiles of a source of kernels, whichever language it is in."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from warpbook_labs.cases.execution import FloatArgument
from warpbook_labs.cases.preparation import is_buffer, launches
from warpbook_labs.compiler.cuda_headers import headers_for
from warpbook_labs.compiler.jobs import Compile, Compiled, CompileTriton, Variant
from warpbook_labs.errors import BadRule
from warpbook_labs.lab.languages.table import rule_of
from warpbook_labs.lab.launch_rule import Rule
from warpbook_labs.lab.loaded import LoadedLab, Submission
from warpbook_labs.sandbox.work import Job

#: that the cases of a submission may need in all
_MOST_VARIANTS = 64
#: where there is no GPU to ask
ARCHITECTURE = "sm_90"


def compile_job(
    submission: Submission,
    rule: Rule,
    sizes: Iterable[Mapping[str, int]],
    architecture: str = ARCHITECTURE,
) -> CompileTriton:
    """Say what the jail has to compile.

    Args:
        sizes: of all cases that it will be launched with.

    Raises:
        BadRule: the launch rule can't be followed.
    """
    variants: dict[str, Variant] = {}
    for size in sizes:
        for variant in _variants(submission.loaded, rule, size):
            other = variants.setdefault(variant.entry, variant)
            if other.types != variant.types:
                raise BadRule(
                    f"`{variant.kernel}` is launched with buffers of other types, too."
                )
    if len(variants) > _MOST_VARIANTS:
        raise BadRule(
            f"The launches want {len(variants)} kernels, with their constants; "
            f"{_MOST_VARIANTS} may be."
        )
    return CompileTriton(submission.source, architecture, tuple(variants.values()))


def _variants(
    loaded: LoadedLab, rule: Rule, sizes: Mapping[str, int]
) -> Iterable[Variant]:
    parameters = loaded.lab.parameters
    scalars = {
        parameter.name: parameter.dtype
        for parameter in parameters
        if parameter.kind == "scalar"
    }
    buffers: dict[str, str] = {
        buffer.name: buffer.dtype for buffer in filter(is_buffer, parameters)
    }
    buffers |= {scratch.name: scratch.dtype for scratch in rule.scratch}
    types = {**scalars, **{name: f"*{dtype}" for name, dtype in buffers.items()}}
    # of numbers, only the type matters
    launched = launches(loaded, rule, sizes, dict.fromkeys(scalars, 0))
    for written, launch in zip(rule.launches, launched, strict=True):
        even = set(launch.even)
        if not loaded.lab.hidden.unaligned:
            even |= {
                place
                for place, argument in enumerate(written.arguments)
                if argument in buffers
            }
        yield Variant(
            launch.kernel,
            launch.entry,
            tuple(
                types.get(
                    text, "float32" if isinstance(given, FloatArgument) else "int32"
                )
                for text, given in zip(written.arguments, launch.arguments, strict=True)
            ),
            launch.constants,
            tuple(sorted(even)),
        )


Sizes = Sequence[Mapping[str, int]]


def job_of(
    submission: Submission,
    architecture: str,
    sizes: Iterable[Mapping[str, int]],
) -> Job[Compiled]:
    """Say what the jail has to compile.

    Args:
        architecture: such as "sm_90".
        sizes: of all cases that it will be launched with.

    Raises:
        BadRule: the launch rule can't be followed.
    """
    return _JOBS[submission.loaded.lab.language](submission, architecture, tuple(sizes))


def image_of(compiled: Compiled) -> bytes:
    """Give what the trusted process is sent: a cubin, or PTX to be assembled there."""
    return compiled.cubin or compiled.ptx.encode() + b"\0"


def cuda_job(source: str, rule: Rule, architecture: str = "compute_90") -> Compile:
    """Say what the jail compiles of CUDA C++, with the templates that are launched."""
    launched = dict.fromkeys(launch.kernel for launch in rule.launches)
    instances = tuple(name for name in launched if "<" in name)
    return Compile(
        source, architecture, headers=headers_for(source), instances=instances
    )


def _cuda(submission: Submission, architecture: str, sizes: Sizes) -> Job[Compiled]:
    source = submission.source
    return cuda_job(source, rule_of(submission.loaded.lab, source), architecture)


def _triton(submission: Submission, architecture: str, sizes: Sizes) -> Job[Compiled]:
    rule = rule_of(submission.loaded.lab, submission.source)
    return compile_job(submission, rule, sizes, architecture)


_JOBS: dict[str, Callable[[Submission, str, Sizes], Job[Compiled]]] = {
    "cuda": _cuda,
    "triton": _triton,
}
