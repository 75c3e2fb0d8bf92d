"""Answers that a learner writes, as a module."""

from __future__ import annotations

from types import ModuleType


def module_of(source: str) -> ModuleType:
    """Execute a source of a plan lab, and give what it defines."""
    module = ModuleType("answers")
    exec(source, module.__dict__)
    return module
