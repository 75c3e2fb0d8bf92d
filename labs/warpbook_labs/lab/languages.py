"""The languages that labs are written in, and what their files are called."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

LanguageName = Literal["cuda", "triton", "plan", "host"]
#: brings what labs in Triton need
INSTALL_TRITON = "pip install 'warpbook[triton]'"
#: brings what labs on host code need
INSTALL_TORCH = "pip install 'warpbook[torch]'"


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
    "host": Language(".py", "solution.py"),
}
