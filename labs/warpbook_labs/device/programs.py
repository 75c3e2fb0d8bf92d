"""What a source is compiled to for a GPU, whichever language it is in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from warpbook_labs.device.driver import Device, DriverError
from warpbook_labs.device.timing import Source
from warpbook_labs.jail import jobs, parent
from warpbook_labs.launch_rule import BadRule, Rule
from warpbook_labs.loader import LoadedLab
from warpbook_labs.nvrtc import compile_to_ptx
from warpbook_labs.preparing import is_buffer, launches
from warpbook_labs.rules import rule_of

#: sets of constants that the cases of a submission may need in all
_MOST_VARIANTS = 16


def job_of(
    loaded: LoadedLab,
    source: str,
    architecture: str,
    sizes: Iterable[Mapping[str, int]],
) -> jobs.Compile | jobs.CompileTriton:
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
        return jobs.Compile(source, architecture)
    rule = rule_of(loaded.lab.language, source)
    found: dict[str, jobs.Variant] = {}
    for each in sizes:
        for variant in _variants(loaded, rule, each):
            other = found.setdefault(variant.entry, variant)
            if other.types != variant.types:
                raise BadRule(
                    f"`{variant.kernel}` is launched with buffers of other types, too."
                )
    if len(found) > _MOST_VARIANTS:
        raise BadRule(
            f"The launches have {len(found)} sets of constants; "
            f"{_MOST_VARIANTS} may be."
        )
    return jobs.CompileTriton(source, architecture, tuple(found.values()))


def _variants(
    loaded: LoadedLab, rule: Rule, sizes: Mapping[str, int]
) -> Iterable[jobs.Variant]:
    parameters = loaded.lab.parameters
    scalars = {each.name: each.dtype for each in parameters if each.kind == "scalar"}
    buffers = {each.name: each.dtype for each in (*filter(is_buffer, parameters),)}
    buffers |= {each.name: each.dtype for each in rule.scratch}
    types = {**scalars, **{name: f"*{dtype}" for name, dtype in buffers.items()}}
    # of numbers, only the type matters
    launched = launches(loaded, rule, sizes, dict.fromkeys(scalars, 0))
    for written, launch in zip(rule.launches, launched, strict=True):
        even = set(launch.even)
        if not loaded.lab.hidden.unaligned:
            even |= {
                place for place, each in enumerate(written.arguments) if each in buffers
            }
        yield jobs.Variant(
            launch.kernel,
            launch.entry,
            tuple(types.get(each, "int32") for each in written.arguments),
            launch.constants,
            tuple(sorted(even)),
        )


def image_of(compiled: jobs.Compiled) -> bytes:
    """Give what the trusted process is sent: a cubin, or PTX to be assembled there."""
    return compiled.cubin or compiled.ptx.encode() + b"\0"


def own_source(device: Device, loaded: LoadedLab, source: str) -> Source:
    """Compile one of the lab's own sources for its timed sizes.

    Raises:
        DriverError: it can't be compiled.
        CompileError: it can't be compiled.
    """
    rule = rule_of(loaded.lab.language, source)
    if loaded.lab.language != "triton":
        return Source(rule, compile_to_ptx(source, device.architecture).cubin)
    sizes = loaded.lab.speed.sizes if loaded.lab.speed else {}
    outcome = parent.run(job_of(loaded, source, device.architecture, [sizes]))
    if not isinstance(outcome.result, jobs.Compiled):
        told = outcome.result
        words = told.message if isinstance(told, jobs.Refused) else outcome.message
        raise DriverError(f"A source of the lab does not compile: {words}")
    return Source(rule, device.assembled(image_of(outcome.result)))
