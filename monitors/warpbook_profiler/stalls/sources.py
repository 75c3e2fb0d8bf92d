"""The files of line tables, as this process finds them: on disk, or of a notebook."""

from __future__ import annotations

import gc
import glob
import linecache
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path, PurePath

from warpbook_profiler.model.stalls import Language
from warpbook_profiler.stalls.attribution import Source, demangled

#: bytes: a longer file is not read
_MOST_BYTES, _MOST_PTX = 200_000, 4_000_000
#: of PTX of the same name
_MOST_TEXTS = 50
_ENDINGS = (".py", ".cu", ".cuh", ".h", ".hpp", ".cpp", ".inl", ".cl")
_HEADERS = (".h", ".hpp", ".cuh", ".inl")
#: of a cell of a notebook, whose file is nowhere
_CELL = re.compile(r"ipykernel_\d+|<ipython-input")
#: a temporary file, named by a hash
_OF_CUPY = ".cubin.cu"
_PACKAGES = frozenset(("site-packages", "dist-packages"))
_INDUCTOR = "from torch._inductor.runtime"


def source_at(path: str, function: str) -> Source:
    """Return what this process knows of a file by its path in a line table.

    Args:
        path: of the file.
        function: the kernel that has lines of it, as its cubin names it.
    """
    where = PurePath(path)
    is_cell = _CELL.search(path) is not None
    text = _text(path) or _of_cupy(path, function)
    language: Language = "cuda"
    if where.suffix == ".py" or is_cell:
        language = "inductor" if _INDUCTOR in text else "triton"
    return Source(
        name=_name(where, language, is_cell=is_cell),
        text=text,
        language=language,
        is_library=not is_cell and _is_library(where, text),
    )


def triton_ptx(function: str) -> Iterator[str]:
    """Give the PTX of kernels with a name that Triton and Inductor keep in files."""
    inductor = os.environ.get("TORCHINDUCTOR_CACHE_DIR") or os.path.join(
        tempfile.gettempdir(), "torchinductor_*"
    )
    triton = os.environ.get("TRITON_CACHE_DIR") or os.path.expanduser("~/.triton/cache")
    name = f"{glob.escape(function)}.ptx"
    for pattern in (f"{triton}/*/{name}", f"{inductor}/triton/*/*/{name}"):
        for path in islice(glob.iglob(pattern), _MOST_TEXTS):
            with suppress(OSError, UnicodeDecodeError):
                file = os.stat(path)
                if file.st_size <= _MOST_PTX and file.st_uid == os.getuid():
                    yield Path(path).read_text()


def _name(path: PurePath, language: Language, *, is_cell: bool) -> str:
    """Return what a person calls a file: of generated ones the name is a hash."""
    if is_cell:
        return "cell"
    if language == "inductor":
        return "Triton of torch.compile"
    return "CUDA C++ in CuPy" if path.name.endswith(_OF_CUPY) else path.name


def _text(path: str) -> str:
    if path in linecache.cache:
        return "".join(linecache.getlines(path))
    if not path.endswith(_ENDINGS):
        return ""
    try:
        if os.stat(path).st_size > _MOST_BYTES or not os.path.isfile(path):
            return ""
    except (OSError, ValueError):
        return ""
    return "".join(linecache.getlines(path))


def _of_cupy(path: str, function: str) -> str:
    """Return the source that CuPy gave NVRTC by a temporary file; empty if none is."""
    if not path.endswith(_OF_CUPY):
        return ""
    texts = {
        str(one.code)
        for one in gc.get_objects()
        if type(one).__module__ == "cupy._core.raw" and hasattr(one, "code")
    }
    word = re.compile(rf"\b{re.escape(demangled(function).partition('(')[0])}\b")
    of_it = [text for text in texts if word.search(text)]
    return of_it[0] if len(of_it) == 1 else ""


def _is_library(path: PurePath, text: str) -> bool:
    if _PACKAGES & set(path.parts) or path.is_relative_to(sys.base_prefix + "/lib"):
        return True
    if path.suffix not in _HEADERS:
        return False
    # NVRTC has CUDA's headers within
    return not text or any(part.startswith("cuda") for part in path.parts)
