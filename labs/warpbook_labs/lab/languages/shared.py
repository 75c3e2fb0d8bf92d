"""Checks of `lab.toml` that several languages share."""

from __future__ import annotations

from pathlib import Path

from warpbook_labs.errors import BadLab
from warpbook_labs.lab.expressions import BadExpression, value
from warpbook_labs.lab.loaded import LoadedLab
from warpbook_labs.lab.spec import Lab

#: of values that are timed
_MOST_KINDS = 4


def refuse_unfit_cases(lab: Lab, file: Path) -> None:
    """Refuse parameters, cases and bounds that do not fit together.

    Raises:
        BadLab: the message names file and key.
    """
    for key, least in (("parameters", 1), ("public", 2), ("tolerance", 1)):
        if len(getattr(lab, key)) < least:
            raise BadLab(f"{file}: {key}: at least {least} must be there.")
    sizes = {parameter.name for parameter in lab.parameters if parameter.kind == "size"}
    names = [parameter.name for parameter in lab.parameters]
    if len(set(names)) < len(names):
        raise BadLab(f"{file}: parameters: two have the same name.")
    if not any(parameter.kind in ("output", "inout") for parameter in lab.parameters):
        raise BadLab(f"{file}: parameters: none is an output.")
    ones = dict.fromkeys(sizes, 1)
    for key, expression in _expressions(lab):
        try:
            value(expression, ones)
        except BadExpression as problem:
            raise BadLab(f"{file}: {key}: {problem}") from None
    for number, case in enumerate(lab.public):
        if set(case.sizes) != sizes:
            wanted = ", ".join(sorted(sizes))
            raise BadLab(f"{file}: public[{number}].sizes: it needs {wanted}.")
        if case.values not in lab.hidden.values:
            raise BadLab(f"{file}: public[{number}].values: not in hidden.values.")
    if set(lab.hidden.sizes) != sizes:
        raise BadLab(f"{file}: hidden.sizes: it needs {', '.join(sorted(sizes))}.")
    for name, of in lab.hidden.sizes.items():
        key = f"hidden.sizes.{name}"
        if of.least > of.most:
            words = f"least is {of.least}, and most is {of.most}"
            raise BadLab(f"{file}: {key}: {words}. Make least the smaller one.")
        if of.device_most and of.device_most < of.most:
            words = f"device_most is {of.device_most}, and most is {of.most}"
            raise BadLab(f"{file}: {key}: {words}. Make most the smaller one.")
        if min((of.least, *of.always)) < 1:
            raise BadLab(f"{file}: {key}: a size is below 1.")
    if lab.speed is not None and set(lab.speed.sizes) != sizes:
        raise BadLab(f"{file}: speed.sizes: it needs {', '.join(sorted(sizes))}.")
    if lab.speed is not None and not 0 < len(lab.speed.values) <= _MOST_KINDS:
        raise BadLab(f"{file}: speed.values: 1 to {_MOST_KINDS} kinds.")
    if any(set(sizes_beyond) != sizes for sizes_beyond in lab.hidden.beyond):
        raise BadLab(f"{file}: hidden.beyond: it needs {', '.join(sorted(sizes))}.")
    if lab.speed is not None and not set(lab.speed.values) <= set(lab.hidden.values):
        raise BadLab(f"{file}: speed.values: not in hidden.values.")


def _expressions(lab: Lab) -> list[tuple[str, str]]:
    costs = ("bytes", "flops", "h2d_bytes", "d2h_bytes")
    expressions = [(f"work.{cost}", getattr(lab.work, cost)) for cost in costs]
    for parameter in lab.parameters:
        expressions += [
            (f"parameters.{parameter.name}.shape", side) for side in parameter.shape
        ]
    for one in lab.counted:
        bounds = [bound for bound in (one.most, one.least) if bound]
        expressions += [(f"counted.{one.count}", bound) for bound in bounds or [""]]
    return expressions


def sources_of(loaded: LoadedLab, suffix: str) -> list[tuple[str, str]]:
    """Give all that is like a learner's source, by file."""
    speed = loaded.lab.speed
    sources = {f"starter{suffix}": loaded.starter}
    for kind in ("correct", "wrong"):
        for name, source in getattr(loaded, kind).items():
            sources[f"solutions/{kind}/{name}"] = source
    if loaded.private is not None:
        sources[f"reference{suffix}"] = loaded.reference
    if speed is not None and loaded.baseline:
        sources[speed.baseline] = loaded.baseline
    return list(sources.items())
