"""Host code: `prepare` and `run`, in PyTorch."""

from __future__ import annotations

import ast
from typing import get_args

from warpbook_labs.errors import INSTALL_TORCH, BadLab
from warpbook_labs.lab.host_spec import HostCount
from warpbook_labs.lab.languages.language import (
    Here,
    Language,
    refuse_unfit_cases,
    sources_of,
)
from warpbook_labs.lab.loaded import GIVEN, LoadedLab
from warpbook_labs.lab.python.syntax import parse
from warpbook_labs.lab.spec import Lab

#: what a learner's host code consists of
FUNCTIONS = ("prepare", "run")


class HostCode(Language):
    """Functions that ask a GPU for work."""

    name = "host"
    source_name = "solution.py"
    section = "host"

    def refuse_unfit(self, loaded: LoadedLab) -> None:
        lab, file = loaded.lab, loaded.folder / "lab.toml"
        refuse_unfit_cases(lab, file)
        for bound in lab.counted:
            if not self._is_simulated(lab):
                words = "only the simulated GPU counts"
                raise BadLab(f"{file}: counted: {bound.count}: {words}.")
            if bound.count not in get_args(HostCount):
                raise BadLab(f"{file}: counted: {bound.count}: only of kernels.")
        given = self._functions(f"{loaded.folder}/{GIVEN}", loaded.given) & {"run"}
        if lab.host is not None and lab.host.on_ranks:
            if lab.host.without_gpu != "cpu" or not given:
                words = 'it goes with `without_gpu = "cpu"` and a run() of given.py'
                raise BadLab(f"{file}: host.on_ranks: {words}.")
        for name, source in sources_of(loaded, self.suffix):
            file_name = f"{loaded.folder}/{name}"
            defined = self._functions(file_name, source) | given
            for function in FUNCTIONS:
                if function not in defined:
                    raise BadLab(f"{file_name}: it has no {function}().")

    def _functions(self, file: str, source: str) -> set[str]:
        try:
            statements = parse(source).body
        except SyntaxError as problem:
            words = f"line {problem.lineno}: {problem.msg}"
            raise BadLab(f"{file}: {words}.") from None
        return {
            statement.name
            for statement in statements
            if isinstance(statement, ast.FunctionDef)
        }

    def needs(self, lab: Lab) -> tuple[str, ...]:
        return () if self._is_simulated(lab) else ("PyTorch",)

    def missing(self, lab: Lab, here: Here) -> str:
        if self._is_simulated(lab) or here.torch:
            return ""
        return f"PyTorch is not installed: {INSTALL_TORCH}"

    def limits(self, lab: Lab, here: Here) -> str:
        if here.gpus and not here.torch:
            return f"Nothing is run on the GPU without PyTorch: {INSTALL_TORCH}"
        return super().limits(lab, here)

    def trial_words(self, lab: Lab) -> str | None:
        if not self._is_simulated(lab):
            return ""
        return ", with what a simulated GPU was asked, and when it did that"

    def _is_simulated(self, lab: Lab) -> bool:
        return lab.host is not None and lab.host.without_gpu == "simulated"
