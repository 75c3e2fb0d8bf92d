"""The languages of labs: ours, and those that installed packages bring."""

from __future__ import annotations

import re
from functools import cache
from importlib.metadata import entry_points

from warpbook_labs.errors import BadLab
from warpbook_labs.lab.languages.host import HostCode
from warpbook_labs.lab.languages.kernels import Cuda, KernelLanguage, Triton
from warpbook_labs.lab.languages.language import LabLanguage, Language
from warpbook_labs.lab.launch_rule import Rule
from warpbook_labs.lab.loaded import FUNCTIONS, LoadedLab
from warpbook_labs.lab.spec import Lab
from warpbook_monitors.plain_text import bounded


class PlanLanguage(Language):
    """Plain Python, asked questions with data of their own."""

    name = "plan"
    source_name = "answers.py"
    section = "plan"
    functions = FUNCTIONS[1]

    def refuse_unfit(self, loaded: LoadedLab) -> None:
        lab, file = loaded.lab, loaded.folder / "lab.toml"
        names = [function.name for function in lab.plan.functions] if lab.plan else []
        if len(set(names)) < len(names):
            raise BadLab(f"{file}: plan.functions: two have the same name.")
        if lab.parameters or lab.public or lab.hidden.sizes or lab.speed:
            raise BadLab(f"{file}: parameters: a plan has functions in their place.")

    def trial_words(self, lab: Lab) -> str | None:
        return None


#: an entry point's name is the language's in `lab.toml`, its value a `LabLanguage`
GROUP = "warpbook.lab_languages"
_SUFFIX = re.compile(r"\.[a-z][a-z0-9]{0,7}")
_FILE_STEM = re.compile(r"[a-z][a-z0-9_]{0,31}")
#: what begins a comment that ends with its line
COMMENT = r"[!-~]{1,4}"

_KERNELS: dict[str, KernelLanguage] = {
    language.name: language for language in (Cuda(), Triton())
}
#: warpbook's own, whose names no package can take
LANGUAGES: dict[str, Language] = {
    **_KERNELS,
    **{language.name: language for language in (PlanLanguage(), HostCode())},
}


def language_of(lab: Lab) -> Language:
    """Return the language of a lab.

    Raises:
        BadLab: it is neither ours nor of an installed package that can be used.
    """
    own = LANGUAGES.get(lab.language)
    return own or installed_language(lab.language).language


@cache
def installed_language(name: str) -> LabLanguage:
    """Load what a package brings, which is imported now; it is checked first.

    Raises:
        BadLab: there is none of this name, or it can't be used; the message says why.
    """
    points = tuple(entry_points(group=GROUP, name=name))
    if not points:
        known = ", ".join(f"`{own}`" for own in LANGUAGES)
        words = f"nothing here brings `{name}`; warpbook itself has {known}"
        raise BadLab(f"{words}. Install the package that it comes with.")
    values = ", ".join(bounded(point.value, 80) for point in points)
    if len(points) > 1:
        raise BadLab(f"more than one package brings `{name}`: {values}.")
    try:
        brought = points[0].load()
        _check(name, brought)
    except (Exception, SystemExit) as problem:  # noqa: BLE001 - a package may do anything
        why = bounded(f"{type(problem).__name__}: {problem}", 300)
        raise BadLab(f"`{name}` ({values}) can't be used: {why}") from None
    assert isinstance(brought, LabLanguage)
    return brought


def _check(name: str, brought: object) -> None:
    """Refuse a language that labs could not be written or graded in.

    Raises:
        TypeError, ValueError: the message says what is wrong.
    """
    if not isinstance(brought, LabLanguage) or not isinstance(
        brought.language, Language
    ):
        raise TypeError("it is no LabLanguage with a Language")
    language = brought.language
    if language.name != name:
        raise ValueError(f"its name is {language.name!r}")
    if _SUFFIX.fullmatch(language.suffix) is None:
        raise ValueError(f"suffix {language.suffix!r} is none such as '.sql'")
    stem = language.source_name.removesuffix(language.suffix)
    if stem == language.source_name or _FILE_STEM.fullmatch(stem) is None:
        words = f"is no plain name that ends in {language.suffix}"
        raise ValueError(f"source_name {language.source_name!r} {words}")
    if re.fullmatch(COMMENT, language.comment) is None:
        raise ValueError(f"comment {language.comment!r} is none such as '#'")
    if language.section:
        raise ValueError("only warpbook's own have a section in lab.toml")
    if language.functions not in FUNCTIONS:
        raise ValueError(f"functions are one of {FUNCTIONS}")
    if not callable(brought.grader):
        raise TypeError("its grader can't be called")


def rule_of(lab: Lab, source: str) -> Rule:
    """Read how a source of a lab on kernels wants them launched.

    Raises:
        BadRule: it does not say, or it is invalid.
        BadSource: the source says what its language has no room for.
    """
    return _KERNELS[lab.language].rule(source)


def is_of_kernels(lab: Lab) -> bool:
    """Return whether a GPU may tell more of a source than the check without one."""
    return lab.language in _KERNELS
