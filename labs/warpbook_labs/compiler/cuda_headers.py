"""Headers that a source may include: NVIDIA's, as NVRTC has them within itself.

NVRTC since 13.3 holds the toolkit's headers for device code and the CUDA C++ Core
Libraries: `cuda_fp16.h`, `cooperative_groups.h`, `mma.h`, `cuda/atomic`. For an older
one they are taken from an installed toolkit: NVIDIA's wheels beside NVRTC, or a
toolkit's folder, at fixed places and of NVRTC's own major version; its very version
comes first, and others add what it lacks. They are read here, where files may be, and
handed to the compiler, which sees none: no source names a path. Headers of the host's
C library come as what device code may want of them.
"""

from __future__ import annotations

import functools
import importlib
import os
import re
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from warpbook_labs.compiler import nvrtc
from warpbook_labs.errors import NotInstalled

#: above it is no header of NVIDIA's
_MOST_HEADER_BYTES = 4 << 20
_MOST_FILES = 20_000
_VERSION_BYTES = 64 << 10
_VERSION = re.compile(r"^#define (?:CUDART_VERSION|CUDA_VERSION)\s+(\d{4,6})\b", re.M)
_VERSION_FILES = ("cuda_runtime_api.h", "cuda.h")
#: beside them lie those of libraries for the host
_FILES = re.compile(
    r"(?:cuda_(?:awbarrier|bf16|fp\d+|pipeline|tf32)\w*|cooperative_groups|mma|cuComplex"
    r"|cudart_platform|math_constants|vector_types|vector_functions)\.(?:h|hpp)"
)
_FOLDERS = ("cooperative_groups", "crt", "cuda", "nv", "cub", "thrust")
#: since CUDA 13, headers of the CUDA C++ Core Libraries lie in a folder of their own
_CORE_LIBRARIES = "cccl"
#: of wheels for CUDA 12, each with an `include` of its own
_WHEELS_OF_12 = ("cuda_runtime", "cuda_cccl", "cuda_nvcc")
#: folders in which pip installs
_SITE = re.compile(r"/(?:site|dist)-packages/?$")
#: that name the folder of a toolkit
_VARIABLES = ("CUDA_HOME", "CUDA_PATH")

Version = tuple[int, int]


class _Place(NamedTuple):
    """Folders with headers of one version of CUDA."""

    version: Version
    folders: tuple[Path, ...]


def toolkit_headers(
    installed: Version, places: Iterable[Sequence[Path]] | None = None
) -> dict[str, Path]:
    """Give the headers for an NVRTC, by the names under which others include them.

    Args:
        places: folders that belong together, of which one says its version; None are
            those of this machine.
    """
    headers: dict[str, Path] = {}
    known = [
        _Place(version, tuple(folders))
        for folders in (_places(installed[0]) if places is None else places)
        if (version := _version(folders)) is not None and version[0] == installed[0]
    ]
    known.sort(key=lambda toolkit: toolkit.version != installed)
    for place in known:
        for name, path in islice(_headers(place.folders), _MOST_FILES):
            headers.setdefault(name, path)
    return headers


def _places(major: int) -> Iterator[tuple[Path, ...]]:
    """Give the places at which wheels and toolkits have their headers."""
    for root in (
        Path(folder) / "nvidia" for folder in sys.path if _SITE.search(folder)
    ):
        yield (root / f"cu{major}" / "include",)
        yield tuple(root / wheel / "include" for wheel in _WHEELS_OF_12)
    toolkits = [Path(os.environ[name]) for name in _VARIABLES if os.environ.get(name)]
    local = Path("/usr/local")
    toolkits += [local / "cuda", *sorted(local.glob(f"cuda-{major}.*"), reverse=True)]
    for toolkit in toolkits:
        yield (toolkit / "include",)


def _version(folders: Iterable[Path]) -> Version | None:
    """Read the version of CUDA whose headers lie there."""
    for folder in folders:
        for name in _VERSION_FILES:
            try:
                with (folder / name).open(encoding="utf-8", errors="replace") as file:
                    said = _VERSION.search(file.read(_VERSION_BYTES))
            except OSError:
                continue
            if said is not None:
                return int(said[1]) // 1000, int(said[1]) % 1000 // 10
    return None


def _headers(folders: Iterable[Path]) -> Iterator[tuple[str, Path]]:
    """Give the headers for device code, with their names."""
    for folder in folders:
        for root in (folder, folder / _CORE_LIBRARIES):
            if not root.is_dir():
                continue
            for path in sorted(root.iterdir()):
                if _FILES.fullmatch(path.name) and _is_header(path):
                    yield path.name, path
            for below in _FOLDERS:
                for path in sorted((root / below).rglob("*")):
                    if _is_header(path):
                        yield path.relative_to(root).as_posix(), path


def _is_header(path: Path) -> bool:
    try:
        return path.is_file() and path.stat().st_size <= _MOST_HEADER_BYTES
    except OSError:
        return False


_INCLUDE = re.compile(
    rb"(?:^[ \t]*#[ \t]*include[ \t]*|__has_include[ \t]*\()[<\"]([^>\"\n]+)[>\"]", re.M
)
_MOST_BYTES = 64 << 20
#: how names begin of what a toolkit has for device code
_OF_CUDA = re.compile(
    r"(?:cooperative_groups|cuda/|cuda_|mma\.|nv/|cub/|thrust/|cuComplex)"
)

_INTEGERS = """
typedef signed char int8_t; typedef unsigned char uint8_t;
typedef short int16_t; typedef unsigned short uint16_t;
typedef int int32_t; typedef unsigned int uint32_t;
typedef long long int64_t; typedef unsigned long long uint64_t;
typedef unsigned long uintptr_t; typedef long intptr_t;
#define INT32_MAX 2147483647
#define INT32_MIN (-INT32_MAX - 1)
#define UINT32_MAX 4294967295u
#define INT64_MAX 9223372036854775807ll
#define INT64_MIN (-INT64_MAX - 1)
#define UINT64_MAX 18446744073709551615ull
"""
_FLOATS = """
#define FLT_MAX 3.402823466e+38f
#define FLT_MIN 1.175494351e-38f
#define FLT_EPSILON 1.192092896e-07f
#define DBL_MAX 1.7976931348623158e+308
#define DBL_MIN 2.2250738585072014e-308
#define DBL_EPSILON 2.2204460492503131e-16
"""
_MATH = """
#define M_PI 3.14159265358979323846
"""
_MATH_IN_STD = "".join(
    f"using ::{name};"
    for name in (
        "abs acos asin atan atan2 cbrt ceil cos cosh erf exp exp2 expm1 fabs floor fma "
        "fmax fmin fmod hypot isfinite isinf isnan ldexp log log10 log1p log2 pow rint "
        "round sin sinh sqrt tan tanh trunc"
    ).split()
)
_ASSERT = """
#ifndef assert
extern "C" __device__ void __assertfail(
    const char*, const char*, unsigned, const char*, size_t);
#define assert(e) \\
    ((e) ? (void)0 : __assertfail(#e, __FILE__, __LINE__, __func__, sizeof(char)))
#endif
"""
#: of the host's library, what is in CUDA's own for device code. Those of CUDA ask for
#: others, such as `version`, where they are
_TWINS = (
    "algorithm array bit complex concepts functional iterator limits numbers numeric "
    "optional span tuple type_traits utility"
).split()
_IN_STD = "namespace std { using namespace cuda::std; }\n"
_INTEGER_NAMES = ("stdint.h", "cstdint", "inttypes.h")
#: by name: what the compiler does not bring of the host's library
_OWN: dict[str, str] = {
    **dict.fromkeys(_INTEGER_NAMES, _INTEGERS),
    **dict.fromkeys(("float.h", "cfloat"), _FLOATS),
    "math.h": _MATH,
    "cmath": f"{_MATH}namespace std {{ {_MATH_IN_STD} }}\n",
    **dict.fromkeys(("assert.h", "cassert"), _ASSERT),
    # the compiler knows what is in them that a kernel may use, or none may use any
    **dict.fromkeys(
        "cuda_runtime.h cuda_runtime_api.h cuda.h device_launch_parameters.h limits.h "
        "climits stdio.h cstdio stddef.h cstddef stdlib.h cstdlib string.h cstring "
        "iostream iomanip fstream sstream vector map string memory random "
        "thread".split(),
        "",
    ),
}
#: what is in it for threads, warps and blocks: the rest is called by a host
_OF_CUB = re.compile(r"cub/(?:block|warp|thread)/(?:block|warp|thread)_\w+\.cuh")


def headers_for(source: str) -> dict[str, bytes]:
    """Give the headers that a source includes, and all that these include, by name."""
    wanted = _INCLUDE.findall(source.encode(errors="replace"))
    headers: dict[str, bytes] = {}
    if not wanted:
        return headers
    known, aliases = _known()
    # a source includes headers by their own names only
    wanted = [name for name in wanted if name.decode(errors="replace") in known]
    total = 0
    while wanted:
        name = wanted.pop().decode(errors="replace")
        header = known.get(name, aliases.get(name))
        if name in headers or header is None:
            continue
        held = _read(header)
        total += len(held or b"")
        if held is None or total > _MOST_BYTES:
            continue
        headers[name] = held
        wanted += _INCLUDE.findall(held)
    return headers


def is_of_cuda(name: str) -> bool:
    """Tell whether a toolkit has a header of this name, as far as the name tells."""
    return _OF_CUDA.match(name) is not None


@functools.cache
def _known() -> tuple[Mapping[str, bytes | Path], Mapping[str, bytes | Path]]:
    """Give every header there is, by its name; and by those that others include."""
    own = {name: b"#pragma once\n" + text.encode() for name, text in _OWN.items()}
    bundled = _bundled()
    others: Mapping[str, bytes | Path] = bundled or _of_toolkit()
    # what the compiler knows by itself, a toolkit's would declare again
    headers = {**own, **bundled} if bundled else {**others, **own}
    aliases: dict[str, bytes | Path] = {}
    for name, header in others.items():
        for alias in _aliases(name):
            aliases.setdefault(alias, header)
    cub = [name for name in others if _OF_CUB.fullmatch(name)]
    if "cub/cub.cuh" in headers:
        text = "".join(f"#include <{name}>\n" for name in cub)
        headers["cub/cub.cuh"] = b"#pragma once\n" + text.encode()
    for name in _TWINS:
        if f"cuda/std/{name}" in headers:
            headers[name] = f"#include <cuda/std/{name}>\n{_IN_STD}".encode()
    for name in _INTEGER_NAMES if "cuda/std/cstdint" in headers else ():
        # which declares the same types, and may be included as well
        headers[name] = b"#include <cuda/std/cstdint>\n"
    return headers, aliases


def _read(header: bytes | Path) -> bytes | None:
    if isinstance(header, bytes):
        return header
    try:
        return header.read_bytes()
    except OSError:
        # it was there; now the compiler says that it is not
        return None


def _of_toolkit() -> Mapping[str, Path]:
    try:
        return toolkit_headers(nvrtc.version_numbers())
    except NotInstalled:
        # whoever compiles says so
        return {}


def _bundled() -> dict[str, bytes]:
    headers: dict[str, bytes] = {}
    with tempfile.TemporaryDirectory(prefix="warpbook-headers-") as folder:
        if not _unpack(folder):
            return headers
        root, total = Path(folder), 0
        for path in sorted(root.rglob("*")):
            if not path.is_file():
                continue
            held = path.read_bytes()
            total += len(held)
            if total > _MOST_BYTES:
                break
            name = path.relative_to(root).as_posix().removeprefix("cccl/")
            headers[name] = held
    return headers


def _aliases(name: str) -> tuple[str, ...]:
    """Give the names under which headers include what lies beside them."""
    folder, _, last = name.rpartition("/")
    if folder.startswith("cooperative_groups"):
        return last, name.removeprefix("cooperative_groups/")
    if folder == "crt":
        return (last,)
    return () if folder else (f"../{name}",)


def _unpack(folder: str) -> bool:
    """Have NVRTC write its headers to a folder; older ones have none."""
    try:
        bindings: Any = importlib.import_module("cuda.bindings.nvrtc")
        return not bindings.nvrtcInstallBundledHeaders(folder.encode(), 0)[0]
    except (ImportError, AttributeError, OSError, RuntimeError):
        return False
