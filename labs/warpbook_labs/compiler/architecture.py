"""Whether a CUDA source is another one on another machine: it reads what differs there.

The interpreter runs what is compiled for one architecture, a GPU what is compiled for
its own. So a source is compiled a second time for the same one, with macros that tell
machines apart made unreadable in the learner's own text, and as they are in headers.
The programs must be the same.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping

from warpbook_labs.compiler.nvrtc import version_numbers

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
