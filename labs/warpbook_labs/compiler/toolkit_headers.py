"""Headers of an installed CUDA toolkit, for an NVRTC that has none within itself.

They lie in NVIDIA's wheels beside NVRTC, or in a toolkit's folder. Only those for
device code are taken, of folders at fixed places and of NVRTC's own major version; of
several folders, those of its very version come first, and others add what it lacks. No
source names a path: what it includes is looked up by name among those found here.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

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
