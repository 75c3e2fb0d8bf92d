"""What people call the languages of labs; the page's list is generated from it."""

from __future__ import annotations

LANGUAGE_NAMES: dict[str, str] = {
    "cuda": "CUDA C++",
    "triton": "Triton",
    "host": "PyTorch host code",
    "plan": "Python functions",
}
