"""The faults that the kernels beside this file name themselves."""

import re
from dataclasses import dataclass
from pathlib import Path

SOURCES = {
    "cuda": Path(__file__).with_name("kernels.cu"),
    "triton": Path(__file__).with_name("triton_kernels.py"),
}
_PLANTED = re.compile(r"(?://|#) planted: (.+)")
_NAME = re.compile(r"(?: void|^def) (\w+)\(")


@dataclass(frozen=True)
class Planted:
    name: str
    language: str
    line: int
    #: any of them
    reasons: frozenset[str]


def planted() -> list[Planted]:
    found = []
    for language, path in SOURCES.items():
        name = ""
        for number, line in enumerate(path.read_text().splitlines(), start=1):
            if (of := _NAME.search(line)) is not None:
                name = of[1]
            if (fault := _PLANTED.search(line)) is not None:
                reasons = frozenset(fault[1].split())
                found.append(Planted(name, language, number, reasons))
    return found
