"""What people call the languages of labs; the page's list is generated from it."""

from __future__ import annotations

from warpbook_labs.lab.spec import LanguageName

LANGUAGE_NAMES: dict[LanguageName, str] = {
    "cuda": "CUDA C++",
    "triton": "Triton",
    "host": "PyTorch host code",
    "plan": "Python functions",
}
