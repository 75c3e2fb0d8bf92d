"""The launch rule of a source, read as its language writes it."""

from __future__ import annotations

from warpbook_labs.engines.interpreter.triton.rule import read_triton_rule
from warpbook_labs.lab.languages import LanguageName
from warpbook_labs.lab.launch_rule import Rule, read_rule


def rule_of(language: LanguageName, source: str) -> Rule:
    """Read how a source wants its kernels launched.

    Raises:
        BadRule: it does not say, or it makes no sense.
        BadSource: the source says what its language has no room for.
    """
    return read_triton_rule(source) if language == "triton" else read_rule(source)
