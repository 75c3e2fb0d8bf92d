"""Kernels, in CUDA C++ and in Triton."""

from __future__ import annotations

from abc import abstractmethod
from typing import get_args

from warpbook_labs.errors import INSTALL_TRITON, BadLab, BadRule, BadSource
from warpbook_labs.lab.languages.language import (
    Here,
    Language,
    refuse_unfit_cases,
    sources_of,
)
from warpbook_labs.lab.launch_rule import Rule, read_rule
from warpbook_labs.lab.loaded import GIVEN, LoadedLab
from warpbook_labs.lab.spec import KernelCount, Lab
from warpbook_labs.lab.triton.rule import read_triton_rule

_OF_TENSOR_CORES = ("matrix_instructions", "dot_multiplications")


class KernelLanguage(Language):
    """Kernels with a comment that says how they are launched."""

    source_note = " The comment that begins with `launch:` says how it is launched."

    @abstractmethod
    def rule(self, source: str) -> Rule:
        """Read how a source wants its kernels launched.

        Raises:
            BadRule: it does not say, or it is invalid.
            BadSource: the source says what its language has no room for.
        """

    def trial_words(self, lab: Lab) -> str | None:
        return ", with what each of its lines costs"

    @abstractmethod
    def not_counted(self, count: str) -> str:
        """Say why a count can't be bounded in this language; empty if it can."""

    def refuse_unfit(self, loaded: LoadedLab) -> None:
        lab, file = loaded.lab, loaded.folder / "lab.toml"
        refuse_unfit_cases(lab, file)
        if loaded.given:
            raise BadLab(f"{loaded.folder / GIVEN}: only host code could import it.")
        for parameter in lab.parameters:
            if parameter.place != "device":
                words = "buffers of kernels are on the device"
                raise BadLab(f"{file}: parameters.{parameter.name}.place: {words}.")
        if lab.speed is not None and lab.speed.calls != 1:
            raise BadLab(f"{file}: speed.calls: only of labs in `host`.")
        for bound in lab.counted:
            words = "only of labs in `host`"
            if bound.count in get_args(KernelCount):
                words = self.not_counted(bound.count)
            if words:
                raise BadLab(f"{file}: counted: {bound.count}: {words}.")
        for name, source in sources_of(loaded, self.suffix):
            try:
                self.rule(source)
            except (BadRule, BadSource) as problem:
                raise BadLab(f"{loaded.folder}/{name}: {problem}") from None


class Cuda(KernelLanguage):
    """CUDA C++, compiled by NVRTC."""

    name = "cuda"
    suffix = ".cu"
    comment = "//"
    source_name = "kernel.cu"

    def rule(self, source: str) -> Rule:
        return read_rule(source)

    def not_counted(self, count: str) -> str:
        return "only of labs in `triton`" if count in _OF_TENSOR_CORES else ""

    def needs(self, lab: Lab) -> tuple[str, ...]:
        return ("NVRTC",)

    def missing(self, lab: Lab, here: Here) -> str:
        return here.remedy if here.compiler is None else ""


class Triton(KernelLanguage):
    """Triton, checked by its own interpreter."""

    name = "triton"
    source_name = "kernel.py"

    def rule(self, source: str) -> Rule:
        return read_triton_rule(source)

    def not_counted(self, count: str) -> str:
        if count in _OF_TENSOR_CORES or count.startswith("global_"):
            return ""
        return (
            "of Triton, global_*, matrix_instructions, dot_multiplications are counted"
        )

    def needs(self, lab: Lab) -> tuple[str, ...]:
        return ("Triton",)

    def missing(self, lab: Lab, here: Here) -> str:
        return "" if here.triton else f"Triton is not installed: {INSTALL_TRITON}"
