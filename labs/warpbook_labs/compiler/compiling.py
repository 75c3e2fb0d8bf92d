"""Compiles CUDA C++ in the jail, and detects a source that differs between machines.

The interpreter runs what is compiled for one architecture, a GPU what is compiled for
its own. So a source is compiled a second time for the same one, with macros that tell
machines apart made unreadable in the learner's own text, and as they are in headers.
The programs must be the same.
"""

from __future__ import annotations

import contextlib
import re
import secrets
from collections.abc import Mapping

from msgspec.structs import replace

from warpbook_labs.compiler import nvrtc
from warpbook_labs.compiler.jobs import Compile, Compiled
from warpbook_labs.compiler.nvrtc import (
    VERBOSE,
    CompileError,
    compile_to_ptx,
    version_numbers,
)
from warpbook_labs.lab.texts import at_line
from warpbook_labs.sandbox.work import Refused

_ARCHITECTURES = ("__CUDA_ARCH__", "__CUDA_ARCH_LIST__", "__CUDA_MINIMUM_ARCH__")
_VERSIONS = ("__CUDACC_VER_MAJOR__", "__CUDACC_VER_MINOR__")
#: that differ, too, and that no header reads
_REFLECTION = "__nvvm_reflect"
_OTHERS = ("__CUDACC_VER_BUILD__", _REFLECTION)
#: by which `nv/target` asks for the architecture, as it defines them
_TARGETS = {
    "NV_IF_TARGET": "(cond, ...) _NV_BLOCK_EXPAND(_NV_TARGET_IF(cond, __VA_ARGS__))",
    "NV_IF_ELSE_TARGET": "(cond, t, f) _NV_BLOCK_EXPAND(_NV_TARGET_IF(cond, t, f))",
    "NV_DISPATCH_TARGET": "(...) _NV_TARGET_DISPATCH(__VA_ARGS__)",
}
#: what headers make of the architecture for themselves, and what is defined only by
#: some compilers or here, so that asking whether it is there tells
_WITHIN_HEADERS = re.compile(
    rf"\b(?:__?(?:NV|CG|CCCL|cccl|LIBCUDACXX)_\w+|{_REFLECTION}|"
    r"__CUDA_ARCH_(?:FEAT|SPECIFIC|FAMILY)\w*)"
)
#: a name that goes on in the next line
_SPLICE = re.compile(r"(?<=\w)(?:\\[ \t]*\n)+(?=\w)")
#: without any of these a text can't name what differs, nor put such a name together
_MAY_NAME = re.compile(r"CUDA|NV|nvvm|#\s*include|##|%:|\?\?|\\\s*$", re.M)
#: no token of the language, so that reading it is an error, also once it is a text:
#: no macro's argument holds the second half
_UNREADABLE = "@ )"
_LINE = re.compile(r"^kernel\.cu\((\d+)\): .*error", re.M)
#: numbers that the compiler makes of a text, in names that nobody else can use
_OF_TEXT = re.compile(
    r"(?<=_INTERNAL_)[0-9a-f]{8}|(?<=_kernel_cu_)[0-9a-f]{8}"
    # debuggers have those names once more, as numbers of letters
    r"|\.section\s+\.debug_\w+\s*\{[^}]*\}"
)


def may_differ(source: str) -> bool:
    """Tell whether a source could name anything that differs."""
    return _MAY_NAME.search(source) is not None


def unreadable(
    source: str, headers: Mapping[str, bytes], architecture: str
) -> tuple[str, dict[str, bytes]]:
    """Give a source where what differs can't be read, and headers that still can.

    Lines stay as they are.

    Args:
        source: in CUDA C++.
        architecture: such as "compute_90".
    """
    number = int(architecture.partition("_")[2].rstrip("af")) * 10
    numbers = dict(zip(_VERSIONS, version_numbers(), strict=True))
    numbers |= dict.fromkeys(_ARCHITECTURES, number)
    # no source knows it, or it could ask
    of_headers = f"_{secrets.token_hex(16)}"
    names = _TARGETS | {name: f" {value}" for name, value in numbers.items()}
    lines = [f"#define {name}{of_headers}{body}" for name, body in names.items()]
    for name in (*names, *_OTHERS):
        lines += [f"#undef {name}", f"#define {name} {_UNREADABLE}"]
    known = re.compile(rf"\b(?:{'|'.join(names)})\b".encode())
    renamed = {
        header: known.sub(rb"\g<0>" + of_headers.encode(), text)
        for header, text in headers.items()
    }
    source = _WITHIN_HEADERS.sub(_UNREADABLE, _SPLICE.sub("", source))
    return "\n".join([*lines, "#line 1", source]), renamed


def is_same(one: str, other: str) -> bool:
    """Tell whether two texts of PTX are one program."""
    return _OF_TEXT.sub("", one) == _OF_TEXT.sub("", other)


def first_line(log: str) -> int | None:
    """Give the line of the learner's that the compiler names first."""
    line = _LINE.search(log)
    return int(line[1]) if line else None


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
    if job.is_for_all and may_differ(job.source):
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
    source, headers = unreadable(job.source, job.headers, job.architecture)
    line = None
    try:
        other = _compiled(replace(job, source=source, headers=headers))
        if is_same(ptx, other.ptx):
            return None
    except CompileError as problem:
        line = first_line(str(problem))
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
