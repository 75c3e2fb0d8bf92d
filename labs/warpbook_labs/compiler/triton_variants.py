"""Which kernels a Triton submission's launches need: one for each kind of numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from warpbook_labs.cases.preparation import is_buffer, launches
from warpbook_labs.compiler.triton_jobs import CompileTriton, Variant
from warpbook_labs.errors import BadRule
from warpbook_labs.lab.launch_rule import Rule
from warpbook_labs.lab.loaded import LoadedLab
from warpbook_labs.lab.submission import Submission

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
        submission: the text, of one configuration.
        rule: of the source.
        sizes: of all cases that it will be launched with.
        architecture: a real one.

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
    buffers = {
        buffer.name: buffer.dtype for buffer in (*filter(is_buffer, parameters),)
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
            tuple(types.get(argument, "int32") for argument in written.arguments),
            launch.constants,
            tuple(sorted(even)),
        )
