"""The languages of labs, by the name that `lab.toml` gives."""

from __future__ import annotations

from warpbook_labs.lab.languages.host import HostCode
from warpbook_labs.lab.languages.kernels import Cuda, KernelLanguage, Triton
from warpbook_labs.lab.languages.language import Language
from warpbook_labs.lab.languages.plan import PlanLanguage
from warpbook_labs.lab.launch_rule import Rule
from warpbook_labs.lab.spec import Lab, LanguageName

_KERNELS: dict[LanguageName, KernelLanguage] = {
    language.name: language for language in (Cuda(), Triton())
}
LANGUAGES: dict[LanguageName, Language] = {
    **_KERNELS,
    **{language.name: language for language in (PlanLanguage(), HostCode())},
}


def language_of(lab: Lab) -> Language:
    """Give the language of a lab."""
    return LANGUAGES[lab.language]


def rule_of(lab: Lab, source: str) -> Rule:
    """Read how a source of a lab on kernels wants them launched.

    Raises:
        BadRule: it does not say, or it is invalid.
        BadSource: the source says what its language has no room for.
    """
    return _KERNELS[lab.language].rule(source)
