"""What the jail compiles of a source of kernels, whichever language it is in."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from warpbook_labs.compiler.cuda_headers import headers_for
from warpbook_labs.compiler.jobs import Compile, Compiled
from warpbook_labs.compiler.triton_variants import compile_job
from warpbook_labs.lab.languages.table import rule_of
from warpbook_labs.lab.submission import Submission
from warpbook_labs.sandbox.work import Job

Sizes = Sequence[Mapping[str, int]]


def job_of(
    submission: Submission,
    architecture: str,
    sizes: Iterable[Mapping[str, int]],
) -> Job[Compiled]:
    """Say what the jail has to compile.

    Args:
        submission: in the lab's language.
        architecture: such as "sm_90".
        sizes: of all cases that it will be launched with.

    Raises:
        BadRule: the launch rule can't be followed.
    """
    return _JOBS[submission.loaded.lab.language](submission, architecture, tuple(sizes))


def image_of(compiled: Compiled) -> bytes:
    """Give what the trusted process is sent: a cubin, or PTX to be assembled there."""
    return compiled.cubin or compiled.ptx.encode() + b"\0"


def _cuda(submission: Submission, architecture: str, sizes: Sizes) -> Job[Compiled]:
    source = submission.source
    return Compile(source, architecture, headers=headers_for(source))


def _triton(submission: Submission, architecture: str, sizes: Sizes) -> Job[Compiled]:
    rule = rule_of(submission.loaded.lab, submission.source)
    return compile_job(submission, rule, sizes, architecture)


_JOBS: dict[str, Callable[[Submission, str, Sizes], Job[Compiled]]] = {
    "cuda": _cuda,
    "triton": _triton,
}
