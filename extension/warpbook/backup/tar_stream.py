"""A tar file of plain files, gzipped, read without trust in what it says of itself.

Python's `tarfile` keeps headers of any size in memory, so only its single blocks are
used here.
"""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import tarfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from warpbook.backup.manifest import BackupError

_BLOCK = 512
_CHUNK = 1 << 20


class Member:
    """One file of it, to be read to its end before the next."""

    def __init__(
        self, path: Path, stream: BinaryIO, name: str, size_bytes: int
    ) -> None:
        """Take the stream at the file's first byte."""
        self.name = name
        self._path = path
        self.size_bytes = size_bytes
        self._stream = stream

    def chunks(self) -> Iterator[bytes]:
        """Read it piece by piece.

        Raises:
            BackupError: the backup ends within it, or is damaged.
        """
        left = self.size_bytes
        while left:
            with _in_words(self._path):
                chunk = _read(self._stream, min(left, _CHUNK))
            left -= len(chunk)
            yield chunk
        with _in_words(self._path):
            _read(self._stream, -self.size_bytes % _BLOCK)


def members(path: Path) -> Iterator[Member]:
    """Read a backup from its beginning to its end.

    Raises:
        BackupError: it is no backup, or damaged.
    """
    with _in_words(path), gzip.open(path) as stream:
        while (block := stream.read(_BLOCK)).strip(b"\0"):
            header = tarfile.TarInfo.frombuf(block, "utf-8", "strict")
            if header.type not in (tarfile.REGTYPE, tarfile.AREGTYPE):
                raise BackupError(f"{path}: it holds more than plain files.")
            if header.size < 0:
                raise BackupError(f"{path}: it is damaged.")
            plain: Any = stream
            yield Member(path, plain, header.name, header.size)


@contextlib.contextmanager
def _in_words(path: Path) -> Iterator[None]:
    try:
        yield
    except (tarfile.TarError, EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise BackupError(f"{path}: it is no backup, or damaged: {error}.") from None
    except UnicodeDecodeError:
        raise BackupError(f"{path}: it is damaged.") from None
    except OSError as error:
        raise BackupError(f"{path}: {error.strerror or error}.") from None


def sha256_of(path: Path) -> str:
    """Give a file's digest."""
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while chunk := stream.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def _read(stream: BinaryIO, size_bytes: int) -> bytes:
    content = stream.read(size_bytes)
    if len(content) < size_bytes:
        raise EOFError("it ends too early")
    return content
