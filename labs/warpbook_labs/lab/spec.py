"""What a lab is, as its `lab.toml` says it.

A lab is a folder: `lab.toml`, `text.md` (with figures beside it), `cases.py`,
`hints.md`, and sources with the suffix of the lab's language (`languages/`): starter,
reference, and what is in `solutions/correct` and `solutions/wrong`. A lab on host code
may have `given.py`, which the learner imports.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from warpbook_labs.lab.host_spec import Host, HostCount, HostPlace
from warpbook_labs.sandbox.work import Limits

#: what functions that only compute may want, all calls of a check together
PLAN_LIMITS = Limits(processor_s=15, asleep_s=20.0, memory_bytes=1 << 30)
#: a schedule: rows of whole numbers
ROWS = "list[list[int]]"
#: what a function may be asked to return, by its name in `lab.toml`
RESULTS: dict[str, Any] = {
    "bool": bool,
    "int": int,
    "float": float,
    "str": str,
    "list[int]": list[int],
    "list[float]": list[float],
    "list[str]": list[str],
    ROWS: list[list[int]],
    "dict[str, int]": dict[str, int],
    "dict[str, float]": dict[str, float],
}
_Name = Annotated[str, Meta(pattern=r"^[a-z][a-z0-9_]{0,31}$")]


class Argument(Struct, frozen=True, forbid_unknown_fields=True):
    """One argument of a function, in its place."""

    name: _Name
    about: Annotated[str, Meta(min_length=1, max_length=1000)]


class Function(Struct, frozen=True, forbid_unknown_fields=True):
    """One function that the learner writes."""

    name: _Name
    about: Annotated[str, Meta(min_length=1, max_length=2000)]
    arguments: Annotated[tuple[Argument, ...], Meta(min_length=1, max_length=8)]
    returns: Literal[
        "bool",
        "int",
        "float",
        "str",
        "list[int]",
        "list[float]",
        "list[str]",
        "list[list[int]]",
        "dict[str, int]",
        "dict[str, float]",
    ]
    #: of its questions, so many must be answered right; none by an error, data of
    #: another type or a broken rule of a dialogue
    share: Annotated[float, Meta(gt=0, le=1)] = 1.0
    #: it is called step by step, and `advance` of the lab says what comes next
    is_dialogue: bool = False


class Plan(Struct, frozen=True, forbid_unknown_fields=True):
    """Functions that are asked questions, each with data of its own."""

    functions: Annotated[tuple[Function, ...], Meta(min_length=1, max_length=8)]
    #: the questions that the learner sees are drawn from it
    seed: int = 0
    #: each call may take so long
    call_s: Annotated[float, Meta(gt=0, le=5)] = 1.0


#: warpbook's own are in `languages/table.py`; an installed package may bring others
LanguageName = Annotated[str, Meta(pattern=r"^[a-z][a-z0-9_]{0,31}$")]
Difficulty = Literal["easy", "medium", "hard"]
Name = Annotated[str, Meta(pattern=r"^[a-z][a-z0-9_]{0,31}$")]
Text = Annotated[str, Meta(min_length=1, max_length=2000)]
DType = Literal[
    "float32", "float64", "float16", "int32", "int64", "uint32", "uint8", "int8"
]

KernelCount = Literal[
    "bank_conflicts",
    "longest_warp_instructions",
    "global_sectors",
    "divergent_branches",
    "shared_requests",
    "global_requests",
    "global_atomics",
    "matrix_instructions",
    "dot_multiplications",
]


class Parameter(Struct, frozen=True, forbid_unknown_fields=True):
    """One argument that the learner's kernels or functions are given, by its name."""

    name: Name
    #: "input" is read, "output" is written whole, "inout" is both; "size" is a number
    #: of the case and "scalar" a number that `cases.py` gives
    kind: Literal["input", "output", "inout", "size", "scalar"]
    dtype: DType = "int32"
    #: of a buffer: an expression of the sizes for each side, such as ["n"]
    shape: tuple[str, ...] = ()
    #: of a buffer of host code
    place: HostPlace = "device"
    about: str = ""


class Sizes(Struct, frozen=True, forbid_unknown_fields=True):
    """Of one size: where it is drawn from for hidden cases."""

    #: tried in every submission, such as 1, 255, 256 and 257
    always: tuple[int, ...]
    #: the others are drawn between these
    least: int = 1
    most: int = 4096
    #: on a GPU some cases are drawn up to this one
    device_most: int | None = None


class Case(Struct, frozen=True, forbid_unknown_fields=True):
    """A case that the learner sees."""

    #: in words: "a prime length", "an empty tail"
    about: Text
    sizes: dict[Name, Annotated[int, Meta(ge=1, le=1 << 24)]]
    #: the kind of values, one of the lab's
    values: Name = "random"
    seed: int = 0


class Hidden(Struct, frozen=True, forbid_unknown_fields=True):
    """How hidden cases are drawn for each submission."""

    sizes: dict[Name, Sizes]
    values: tuple[Name, ...]
    #: besides one for each combination that must be tried
    drawn: Annotated[int, Meta(ge=0, le=32)] = 4
    #: some buffers begin one element off the alignment that they else have
    unaligned: bool = False
    #: sizes of cases, one each, of more elements or a longer side than 16 bits count
    beyond: Annotated[tuple[dict[Name, int], ...], Meta(max_length=4)] = ()


class Work(Struct, frozen=True, forbid_unknown_fields=True):
    """What a case costs at least: expressions of its sizes."""

    bytes: str
    flops: str
    #: of the arithmetic, where it is not that of the first output
    dtype: DType | Literal["float8_e4m3fn"] | None = None
    #: of host code: what must go over the link to the GPU, and back
    h2d_bytes: str = "0"
    d2h_bytes: str = "0"


class Speed(Struct, frozen=True, forbid_unknown_fields=True):
    """What full marks for speed want; graded on a GPU only."""

    #: sizes that are timed
    sizes: dict[Name, int]
    #: kinds of values that are timed, one drawn for each call: together they must have
    #: all bits of their type, so that a product of fewer bits shows; each element is
    #: drawn by itself
    values: tuple[Name, ...] = ("random",)
    #: time at the limit that was measured over time taken
    of_limit: Annotated[float, Meta(gt=0, le=1)] | None = None
    #: time of the baseline over time taken
    of_baseline: Annotated[float, Meta(gt=0)] | None = None
    #: a file in the lab's folder, or "" for the starter
    baseline: str = ""
    #: of host code: calls of `run`, each on buffers of its own, that are timed together
    calls: Annotated[int, Meta(ge=1, le=1024)] = 1


class Counted(Struct, frozen=True, forbid_unknown_fields=True):
    """What the source may ask of the machine; graded without a GPU too."""

    #: of kernels one of `ptx.findings.Counts`, of host code one of its own
    count: KernelCount | HostCount
    #: what to do, in words, before the numbers
    about: Text
    #: expressions of the case's sizes; "" is no bound
    most: str = ""
    least: str = ""


class Lab(Struct, frozen=True, forbid_unknown_fields=True):
    """One exercise."""

    id: Annotated[str, Meta(pattern=r"^[a-z][a-z0-9-]{2,40}$")]
    number: Annotated[int, Meta(ge=1, le=999)]
    title: Text
    track: Literal[
        "kernels",
        "memory",
        "precision",
        "attention",
        "streams",
        "training",
        "serving",
        "data",
        "profile",
    ]
    goal: Text
    #: what the learner writes
    asks: Text
    language: LanguageName
    #: of a plan lab, which has functions in place of what follows
    plan: Plan | None = None
    #: of a lab on host code
    host: Host | None = None
    parameters: Annotated[tuple[Parameter, ...], Meta(max_length=24)] = ()
    public: Annotated[tuple[Case, ...], Meta(max_length=16)] = ()
    hidden: Hidden = Hidden({}, ())
    work: Work = Work("0", "0")
    #: what is asked of wrong results, in words; the bound itself is in `cases.py`
    tolerance: str = ""
    #: what is asked of the kernel beside its results
    counted: tuple[Counted, ...] = ()
    speed: Speed | None = None
    minutes: Annotated[int, Meta(ge=5, le=240)] = 30
    #: None where the author does not say
    difficulty: Difficulty | None = None
    #: ids of labs to have done before
    after: tuple[str, ...] = ()

    @property
    def folder_name(self) -> str:
        """Name the folder that it lives in, which Python could import."""
        return self.id.replace("-", "_")
