"""Compiles CUDA C++ in the jail."""

from __future__ import annotations

import contextlib
import re

from msgspec.structs import replace

from warpbook_labs.compiler import architecture, nvrtc
from warpbook_labs.compiler.jobs import Compile, Compiled
from warpbook_labs.compiler.nvrtc import VERBOSE, CompileError, compile_to_ptx
from warpbook_labs.lab.texts import at_line
from warpbook_labs.sandbox.work import Refused

_HOST_FUNCTION = re.compile(
    r"^kernel\.cu\((\d+)\): error: (?:A function without execution space|A function "
    r"explicitly marked as a __host__).*\n.*\n( *)\^",
    re.M,
)
_ON_LAMBDA = "annotation on lambda is not allowed"
_LAMBDA = re.compile(r"(?<=\])(\s*)((?:__(?:host|device)__\s*)+)(?=[({])")
#: comments and texts, where a brace is none
_PIECE = re.compile(
    r"//[^\n]*|/\*(?:[^*]|\*(?!/))*\*/|\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'|[{};]"
    r"|^[ \t]*#[^\n]*",
    re.M,
)
#: how far the compiler's picture of a line stands to the right
_INDENT = 2


def without_host_parts(source: str, log: str) -> str:
    """Return the source without what the log calls the host's.

    Where nothing can be left out it is as it was.
    """
    if _ON_LAMBDA in log:
        source = _LAMBDA.sub(lambda mark: mark[1] + _blank(mark[2]), source)
    lines = [0, *(newline.end() for newline in re.finditer("\n", source))]
    pieces = list(_PIECE.finditer(source))
    edits: list[tuple[int, int, str]] = []
    for number, indent in _HOST_FUNCTION.findall(log):
        name = lines[int(number) - 1] + len(indent) - _INDENT
        begin, end = _span(name, pieces)
        constant = re.search(r"\bconstexpr\b", source[begin:name])
        if constant is not None:
            at = begin + constant.start()
            edits.append((at, at, "__host__ __device__ "))
        elif end:
            edits.append((begin, end, _blank(source[begin:end])))
    for begin, end, text in sorted(edits, reverse=True):
        source = source[:begin] + text + source[end:]
    return source


def _span(name: int, pieces: list[re.Match[str]]) -> tuple[int, int]:
    """Give where a function begins and ends; the end is 0 where it can't be found."""
    begin, depth = 0, 0
    for piece in pieces:
        sign = piece[0]
        if piece.end() <= name:
            begin = begin if sign[0] in "\"'" else piece.end()
        elif sign == ";" and not depth:
            return begin, piece.end()
        elif sign in "{}":
            depth += 1 if sign == "{" else -1
            if not depth:
                return begin, piece.end()
    return begin, 0


def _blank(text: str) -> str:
    return re.sub(r"[^\n]", " ", text)


__all__ = ["Job", "do", "prepare"]

Job = Compile
#: an error that is first met in no text of the learner's
_IN_HEADER = re.compile(r"(?!kernel\.cu)([\w./]+)\(\d+\): .*?error: (.*)")
#: what the assembler reports beside its errors
_NOTES = re.compile(r"^ptxas (?!error|fatal).*\n", re.M)
#: what else the assembler refuses, the interpreter may still run
_NO_ROOM = re.compile(r"^ptxas error.* uses too much ", re.M)
#: has the compiler load what it needs
_REHEARSAL = """
extern "C" __global__ void rehearse(float* x) { x[threadIdx.x] = sinf(x[0]) * 3.0f; }
"""


def prepare() -> None:
    """Load all that jobs need, which no file can be opened for later."""
    compile_to_ptx(_REHEARSAL)
    with contextlib.suppress(CompileError):
        compile_to_ptx("this does not compile")


def do(job: Compile) -> Compiled | Refused:
    try:
        job, compiled, resources_log = _without_host_parts(job)
    except CompileError as problem:
        return _refused(job, str(problem))
    if job.is_for_all and architecture.may_differ(job.source):
        differs = _difference(job, compiled.ptx)
        if differs is not None:
            return differs
    log = _NOTES.sub("", compiled.log)
    return Compiled(compiled.ptx, log, compiled.cubin, resources_log)


def _without_host_parts(job: Compile) -> tuple[Compile, nvrtc.Compiled, str]:
    """Compile a source, once more without what it has for the host if that is in it."""
    try:
        return job, *_with_resources(job)
    except CompileError as problem:
        other = replace(job, source=without_host_parts(job.source, str(problem)))
        if other.source == job.source:
            raise
        try:
            return other, *_with_resources(other)
        except CompileError:
            # a kernel needs it
            raise problem from None


def _with_resources(job: Compile) -> tuple[nvrtc.Compiled, str]:
    """Compile a source; return it with the log of what each kernel takes.

    Raises:
        CompileError: it is no source, or no GPU of this kind has room for it.
    """
    if not job.resources_for:
        return _compiled(job), ""
    options = (*job.options, VERBOSE)
    assembled = replace(job, architecture=job.resources_for, options=options)
    is_one = job.resources_for.replace("sm_", "compute_") == job.architecture
    compiled = None if is_one else _compiled(job)
    try:
        assembly = _compiled(assembled)
    except CompileError as problem:
        if _NO_ROOM.search(str(problem)):
            raise
        return compiled or _compiled(job), ""
    return compiled or assembly, assembly.log


def _refused(job: Compile, log: str) -> Refused:
    """Refuse a source that is wrong, or whose header of NVIDIA's can't be compiled."""
    header = _IN_HEADER.match(log)
    # what its own code has a template do is named in the error, too
    if header is None or "kernel.cu(" in log:
        return Refused(_NOTES.sub("", log))
    first = header[1].partition("/")[0]
    lines = enumerate(job.source.splitlines(), 1)
    included = (
        number for number, text in lines if re.search(rf"include.*{first}", text)
    )
    line = next(included, None)
    words = f"`{header[1]}` can't be compiled here: {header[2]}"
    return Refused(at_line(words, line), "unsupported", line)


def _difference(job: Compile, ptx: str) -> Refused | None:
    """Say where a source is another one on other GPUs; None where it is not."""
    source, headers = architecture.unreadable(job.source, job.headers, job.architecture)
    line = None
    try:
        other = _compiled(replace(job, source=source, headers=headers))
        if architecture.is_same(ptx, other.ptx):
            return None
    except CompileError as problem:
        line = architecture.first_line(str(problem))
    words = at_line(
        "this asks which GPU or compiler it is for (`__CUDA_ARCH__` and the like), so "
        "it may be another kernel on another GPU. That is not supported without a GPU.",
        line,
    )
    return Refused(words, "unsupported", line)


def _compiled(job: Compile) -> nvrtc.Compiled:
    return compile_to_ptx(
        job.source, job.architecture, job.options, job.headers, job.instances
    )
