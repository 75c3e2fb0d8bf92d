"""Reads labs from their folders, and refuses a bad one with file and key."""

from __future__ import annotations

import ast
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, get_args

import msgspec

from warpbook_labs.lab.edits import BadEdit, read_edited
from warpbook_labs.lab.expressions import BadExpression, value
from warpbook_labs.lab.files import CATALOGUE, HINT, UnfitFile, read_file
from warpbook_labs.lab.host_spec import HostCount
from warpbook_labs.lab.launch_rule import BadRule
from warpbook_labs.lab.own_python import BadPython, Cases, imported_cases, jailed_cases
from warpbook_labs.lab.rules import rule_of
from warpbook_labs.lab.sources import BadSource
from warpbook_labs.lab.spec import KernelCount, Lab
from warpbook_labs.lab.syntax import parse
from warpbook_labs.lab.texts import figures
from warpbook_labs.lab.vault import VAULT, private_folder

#: what a lab on host code gives to import
GIVEN = "given.py"
#: what a learner's host code consists of
HOST_FUNCTIONS = ("prepare", "run")
#: of values that are timed
_MOST_KINDS = 4


class BadLab(Exception):
    """A lab can't be used; the message names its file and what is wrong there."""


class NotTrusted(BadLab):
    """A lab of somebody's, of which the person has not said that they trust it."""


class KeptApart(BadLab):
    """What it takes is not on this machine, on purpose; the message says so."""


@dataclass(frozen=True)
class LoadedLab:
    """A lab with all that belongs to it."""

    folder: Path
    lab: Lab
    cases: Cases
    text: str
    starter: str
    #: what host code may import as `given`; "" where there is nothing
    given: str
    reference: str
    #: what `speed.baseline` names; "" where it names nothing, or is kept apart
    baseline: str
    hints: tuple[str, ...]
    #: by file name
    correct: dict[str, str]
    wrong: dict[str, str]
    #: of reference, cases and solutions; None where they are kept apart
    private: Path | None
    #: SHA-256 of what decides a grade, as far as it is here
    digest: str = ""


def load_all(catalogue: Path = CATALOGUE) -> dict[str, LoadedLab]:
    """Load every lab, by id, in the order of their numbers.

    Raises:
        BadLab: one can't be used, or two have the same id or number.
    """
    found: dict[str, LoadedLab] = {}
    numbers: dict[int, str] = {}
    for file in sorted(catalogue.glob("*/*/lab.toml")):
        loaded = load(file.parent)
        lab = loaded.lab
        if lab.id in found or lab.number in numbers:
            other = lab.id if lab.id in found else numbers[lab.number]
            raise BadLab(f"{file}: id and number must be its own; `{other}` has them.")
        found[lab.id], numbers[lab.number] = loaded, lab.id
    return dict(sorted(found.items(), key=lambda pair: pair[1].lab.number))


def refuse_taken(
    loaded: LoadedLab,
    catalogue: Path = CATALOGUE,
    keys: Sequence[str] = ("id", "number"),
) -> None:
    """Refuse a lab whose id or number one of the catalogue has.

    Raises:
        BadLab: it does; what is handed in for both would be mixed up.
    """
    file = loaded.folder / "lab.toml"
    for other in sorted(catalogue.glob("*/*/lab.toml")):
        if other.resolve() == file.resolve():
            continue
        lab = _lab(other)
        for key in keys:
            if getattr(lab, key) == getattr(loaded.lab, key):
                words = f"`{lab.id}` of the catalogue has it. Choose another."
                raise BadLab(f"{file}: {key}: {words}")


def load(folder: Path) -> LoadedLab:
    """Load one lab.

    Raises:
        BadLab: it can't be used.
    """
    lab = _lab(folder / "lab.toml")
    suffix = lab.files.suffix
    private = private_folder(folder)
    solutions: dict[str, dict[str, str]] = {"correct": {}, "wrong": {}}
    if private is None:
        cases = _shown(folder, lab)
    else:
        cases = _cases(folder, private, lab)
    starter = _text(folder / f"starter{suffix}")
    if private is not None:
        for kind, sources in solutions.items():
            for file in _solutions(private / "solutions" / kind, suffix):
                sources[file.name] = _text(file)
    reference = "" if private is None else _text(private / f"reference{suffix}")
    if private is not None:
        _add_edited(private / "solutions" / "wrong.toml", suffix, reference, solutions)
    loaded = LoadedLab(
        folder,
        lab,
        cases,
        _text(folder / "text.md"),
        starter,
        _text(folder / GIVEN) if (folder / GIVEN).is_file() else "",
        reference,
        "" if private is None else _baseline(folder / "lab.toml", lab, private),
        tuple(part.strip() for part in _text(folder / "hints.md").split(HINT)),
        solutions["correct"],
        solutions["wrong"],
        private,
    )
    _check(loaded)
    return replace(loaded, digest=_digest(loaded))


def _digest(loaded: LoadedLab) -> str:
    """Compute what tells this lab from another of its id."""
    parts = [_text(loaded.folder / "lab.toml"), loaded.given, loaded.reference]
    parts.append(loaded.baseline)
    if loaded.private is not None:
        parts.append(_text(loaded.private / "cases.py"))
    return sha256(json.dumps(parts).encode()).hexdigest()


def _add_edited(
    file: Path, suffix: str, reference: str, solutions: dict[str, dict[str, str]]
) -> None:
    """Add wrong solutions that are told by how they differ from right ones."""
    if not file.exists():
        return
    bases = {Path(name).stem: text for name, text in solutions["correct"].items()}
    try:
        edited = read_edited(_text(file), {**bases, "": reference})
    except BadEdit as problem:
        raise BadLab(f"{file}: {problem}") from None
    wrong = solutions["wrong"]
    for name, source in edited.items():
        if f"{name}{suffix}" in wrong:
            raise BadLab(f"{file}: {name}: there is a file of this name, too.")
        wrong[f"{name}{suffix}"] = source
    solutions["wrong"] = dict(sorted(wrong.items()))


def _solutions(folder: Path, suffix: str) -> list[Path]:
    found = []
    for file in sorted(folder.glob("*")):
        # what an editor or Python leaves there is no solution
        if not file.is_file() or file.name.startswith("."):
            continue
        if file.suffix != suffix:
            words = f"in this language a solution's name ends in {suffix}"
            raise BadLab(f"{file}: {words}. Rename it, or put it elsewhere.")
        found.append(file)
    return found


def _text(file: Path) -> str:
    try:
        text = read_file(file)
    except UnfitFile as problem:
        raise BadLab(str(problem)) from None
    if not text.strip():
        raise BadLab(f"{file}: this file is empty.")
    return text


def _lab(file: Path) -> Lab:
    try:
        return msgspec.toml.decode(_text(file), type=Lab)
    except msgspec.DecodeError as problem:
        # it names the key: "... - at `$.public[0].sizes`"
        raise BadLab(f"{file}: {problem}") from None


def _baseline(file: Path, lab: Lab, private: Path) -> str:
    name = lab.speed.baseline if lab.speed is not None else ""
    if name and not (private / name).is_file():
        raise BadLab(f"{file}: speed.baseline: `{name}` is not in the folder.")
    return _text(private / name) if name else ""


def _cases(folder: Path, private: Path, lab: Lab) -> Cases:
    """Give the lab's own Python: only the catalogue's and a grader's is imported."""
    is_own = folder.resolve().is_relative_to(CATALOGUE) or private != folder
    cases = imported_cases if is_own else jailed_cases
    try:
        return cases(private / "cases.py", lab.language)
    except BadPython as problem:
        raise BadLab(str(problem)) from None


def _shown(folder: Path, lab: Lab) -> Cases:
    """Give the cases that the lab shows, where the generator is kept apart."""

    def absent(*_: Any) -> Any:
        raise KeptApart(
            f"{lab.id}: its questions are kept apart from this machine, and {VAULT} "
            "names no folder that has them."
        )

    # the server loads this file, and no NumPy
    from warpbook_labs.lab.shown_cases import shown_functions  # noqa: PLC0415

    try:
        functions = shown_functions(folder, lab)
    except (OSError, ValueError) as problem:
        raise BadLab(f"{folder}: the cases that it shows: {problem}") from None
    return Cases(**functions, questions=absent, judge=absent)


def _check(loaded: LoadedLab) -> None:
    """Refuse what no type tells."""
    lab, file = loaded.lab, loaded.folder / "lab.toml"
    if lab.folder_name != loaded.folder.name:
        raise BadLab(f"{file}: id: the folder must be called {lab.folder_name}.")
    for name in figures(loaded.text):
        if "/" in name or not (loaded.folder / name).is_file():
            raise BadLab(f"{loaded.folder}/text.md: `{name}` is not in the folder.")
    for kind in ("correct", "wrong"):
        if loaded.private is not None and not getattr(loaded, kind):
            raise BadLab(f"{loaded.private}/solutions/{kind}: there is none.")
    if lab.language == "plan" or lab.plan is not None:
        _check_plan(lab, file)
        return
    _check_numbers(lab, file)
    if lab.language == "host" or lab.host is not None:
        _check_host(loaded, file)
    else:
        _check_kernels(loaded, file)


def _check_plan(lab: Lab, file: Path) -> None:
    if lab.language != "plan" or lab.plan is None:
        raise BadLab(f"{file}: plan: it goes with the language `plan`, and only there.")
    names = [each.name for each in lab.plan.functions]
    if len(set(names)) < len(names):
        raise BadLab(f"{file}: plan.functions: two have the same name.")
    if lab.parameters or lab.public or lab.hidden.sizes or lab.speed:
        raise BadLab(f"{file}: parameters: a plan has functions in their place.")


def _check_numbers(lab: Lab, file: Path) -> None:
    for key, least in (("parameters", 1), ("public", 2), ("tolerance", 1)):
        if len(getattr(lab, key)) < least:
            raise BadLab(f"{file}: {key}: at least {least} must be there.")
    sizes = {each.name for each in lab.parameters if each.kind == "size"}
    names = [each.name for each in lab.parameters]
    if len(set(names)) < len(names):
        raise BadLab(f"{file}: parameters: two have the same name.")
    if not any(each.kind in ("output", "inout") for each in lab.parameters):
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
        if min(of.least, *of.always, 0) < 0:
            raise BadLab(f"{file}: {key}: a size is below 0.")
    if lab.speed is not None and set(lab.speed.sizes) != sizes:
        raise BadLab(f"{file}: speed.sizes: it needs {', '.join(sorted(sizes))}.")
    if lab.speed is not None and not 0 < len(lab.speed.values) <= _MOST_KINDS:
        raise BadLab(f"{file}: speed.values: 1 to {_MOST_KINDS} kinds.")
    if any(set(each) != sizes for each in lab.hidden.beyond):
        raise BadLab(f"{file}: hidden.beyond: it needs {', '.join(sorted(sizes))}.")
    if lab.speed is not None and not set(lab.speed.values) <= set(lab.hidden.values):
        raise BadLab(f"{file}: speed.values: not in hidden.values.")


def _check_kernels(loaded: LoadedLab, file: Path) -> None:
    lab = loaded.lab
    if loaded.given:
        raise BadLab(f"{loaded.folder / GIVEN}: only host code could import it.")
    for parameter in lab.parameters:
        if parameter.place != "device":
            words = "buffers of kernels are on the device"
            raise BadLab(f"{file}: parameters.{parameter.name}.place: {words}.")
    if lab.speed is not None and lab.speed.calls != 1:
        raise BadLab(f"{file}: speed.calls: only of labs in `host`.")
    for each in lab.counted:
        if each.count not in get_args(KernelCount):
            raise BadLab(f"{file}: counted: {each.count}: only of labs in `host`.")
        is_matrix = each.count in ("matrix_instructions", "dot_multiplications")
        if lab.language == "triton" and not (
            is_matrix or each.count.startswith("global_")
        ):
            words = "of Triton, global_*, matrix_instructions, dot_multiplications are"
            raise BadLab(f"{file}: counted: {each.count}: {words} counted.")
        if lab.language == "cuda" and is_matrix:
            raise BadLab(f"{file}: counted: {each.count}: only of labs in `triton`.")
    for name, source in _sources(loaded):
        try:
            rule_of(lab.language, source)
        except (BadRule, BadSource) as problem:
            raise BadLab(f"{loaded.folder}/{name}: {problem}") from None


def _check_host(loaded: LoadedLab, file: Path) -> None:
    lab = loaded.lab
    if lab.language != "host" or lab.host is None:
        raise BadLab(f"{file}: host: it goes with the language `host`, and only there.")
    for each in lab.counted:
        if lab.host.without_gpu != "simulated":
            words = "only the simulated GPU counts"
            raise BadLab(f"{file}: counted: {each.count}: {words}.")
        if each.count not in get_args(HostCount):
            raise BadLab(f"{file}: counted: {each.count}: only of kernels.")
    for name, source in [*_sources(loaded), (GIVEN, loaded.given)]:
        try:
            held = parse(source).body
        except SyntaxError as problem:
            words = f"line {problem.lineno}: {problem.msg}"
            raise BadLab(f"{loaded.folder}/{name}: {words}.") from None
        written = {each.name for each in held if isinstance(each, ast.FunctionDef)}
        for function in () if name == GIVEN else HOST_FUNCTIONS:
            if function not in written:
                raise BadLab(f"{loaded.folder}/{name}: it has no {function}().")


def _sources(loaded: LoadedLab) -> list[tuple[str, str]]:
    """Give all that is like a learner's source, by file."""
    suffix, speed = loaded.lab.files.suffix, loaded.lab.speed
    sources = {f"starter{suffix}": loaded.starter}
    for kind in ("correct", "wrong"):
        for name, source in getattr(loaded, kind).items():
            sources[f"solutions/{kind}/{name}"] = source
    if loaded.private is not None:
        sources[f"reference{suffix}"] = loaded.reference
    if speed is not None and loaded.baseline:
        sources[speed.baseline] = loaded.baseline
    return list(sources.items())


def _expressions(lab: Lab) -> list[tuple[str, str]]:
    costs = ("bytes", "flops", "h2d_bytes", "d2h_bytes")
    found = [(f"work.{each}", getattr(lab.work, each)) for each in costs]
    for each in lab.parameters:
        found += [(f"parameters.{each.name}.shape", side) for side in each.shape]
    for one in lab.counted:
        bounds = [bound for bound in (one.most, one.least) if bound]
        found += [(f"counted.{one.count}", bound) for bound in bounds or [""]]
    return found
