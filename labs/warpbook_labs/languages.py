"""The languages that labs are written in, and what their files are called."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

LanguageName = Literal["cuda", "triton", "plan"]
#: brings what labs in Triton need
INSTALL_TRITON = "pip install 'warpbook[triton]'"


@dataclass(frozen=True)
class Language:
    """How files of one language are called."""

    #: of starter, reference and solutions
    suffix: str
    #: the learner's own file
    source_name: str


LANGUAGES: dict[LanguageName, Language] = {
    "cuda": Language(".cu", "kernel.cu"),
    "triton": Language(".py", "kernel.py"),
    "plan": Language(".py", "answers.py"),
}
