"""Reads the corpus: right sources as files, all others as differences from them.

`sources/<lab>/` holds right sources, each with a comment in its first line that says
what is unusual about it, and `edits.toml`, with sources that differ from one of these
in a few places: wrong ones, and some right ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from msgspec import Struct

from tests.corpus.causes import CAUSES
from warpbook_labs.course.session import find
from warpbook_labs.lab.edits import BadEdit, Edit, edited
from warpbook_labs.lab.languages.table import language_of
from warpbook_labs.lab.loaded import LoadedLab
from warpbook_monitors import toml_text

SOURCES = Path(__file__).with_name("sources")
EDITS = "edits.toml"


class BadCorpus(ValueError):
    """An entry is not as it must be; the message names it."""


class Right(Struct, frozen=True, forbid_unknown_fields=True):
    """A right source, as a difference from another."""

    name: str
    base: str
    #: what is unusual about it, in one line
    unusual: str
    edits: tuple[Edit, ...]


class Wrong(Struct, frozen=True, forbid_unknown_fields=True):
    """A source that is wrong in one way, as a difference from a right one."""

    name: str
    base: str
    #: what is wrong, in one line
    reason: str
    #: one of `causes.CAUSES`: what the verdict must say
    cause: str
    #: parts of lines of which the verdict must name one: each is in one line only
    lines: tuple[str, ...]
    edits: tuple[Edit, ...]
    #: it can't be told without a GPU, such as speed
    needs_gpu: bool = False


class _Edits(Struct, frozen=True, forbid_unknown_fields=True):
    right: tuple[Right, ...] = ()
    wrong: tuple[Wrong, ...] = ()


@dataclass(frozen=True)
class Entry:
    """One source of the corpus, with what is known of it."""

    lab: str
    language: str
    name: str
    is_right: bool
    #: what is unusual about a right one, or wrong with a wrong one
    about: str
    source: str
    cause: str = ""
    #: numbers of lines of which the verdict must name one
    lines: tuple[int, ...] = ()
    needs_gpu: bool = False

    @property
    def title(self) -> str:
        """Name it among all."""
        return f"{self.lab}/{self.name}"


def folders() -> list[Path]:
    """Give the folder of each lab that has sources."""
    return sorted(path for path in SOURCES.iterdir() if path.is_dir())


def read_all(labs: Sequence[str] = ()) -> list[Entry]:
    """Read the corpus, or some labs of it by their ids.

    Raises:
        BadCorpus: an entry is not as it must be.
    """
    wanted = {lab.replace("-", "_") for lab in labs}
    unknown = wanted - {folder.name for folder in folders()}
    if unknown:
        raise BadCorpus(f"There are no sources for {', '.join(sorted(unknown))}.")
    return [
        entry
        for folder in folders()
        if not wanted or folder.name in wanted
        for entry in read_folder(folder)
    ]


def read_folder(folder: Path) -> Iterator[Entry]:
    """Read the sources of one lab.

    Raises:
        BadCorpus: an entry is not as it must be.
    """
    lab = find(folder.name.replace("_", "-"))
    suffix = language_of(lab.lab).suffix
    files = {path.stem: path for path in sorted(folder.glob(f"*{suffix}"))}
    texts = {name: file.read_text(encoding="utf-8") for name, file in files.items()}
    names = set()
    for entry in _entries(folder, lab, texts):
        if entry.name in names:
            raise BadCorpus(f"{entry.title}: there is another of this name.")
        names.add(entry.name)
        yield entry


def _entries(folder: Path, lab: LoadedLab, texts: dict[str, str]) -> Iterator[Entry]:
    name, language = lab.lab.id, lab.lab.language
    for stem, text in texts.items():
        yield Entry(name, language, stem, True, _first_comment(folder, text), text)
    edits = toml_text.decode((folder / EDITS).read_bytes(), _Edits)
    for right in edits.right:
        # so that others can be told as differences from it
        mark = texts[right.base].partition(" ")[0]
        text = f"{mark} {right.unusual}.\n{_changed(folder, right, texts)}"
        texts[right.name] = text
        yield Entry(name, language, right.name, True, right.unusual, text)
    for wrong in edits.wrong:
        source = _changed(folder, wrong, texts)
        if wrong.cause not in CAUSES:
            raise BadCorpus(f"{folder.name}/{wrong.name}: no cause is `{wrong.cause}`.")
        yield Entry(
            name,
            language,
            wrong.name,
            False,
            wrong.reason,
            source,
            wrong.cause,
            tuple(_line_of(folder, wrong.name, line, source) for line in wrong.lines),
            wrong.needs_gpu,
        )


def _first_comment(folder: Path, text: str) -> str:
    first = text.partition("\n")[0]
    if not first.startswith(("// ", "# ")):
        raise BadCorpus(f"{folder.name}: a source begins with a comment: {first}")
    return first.lstrip("/# ").strip()


def _changed(folder: Path, entry: Right | Wrong, texts: dict[str, str]) -> str:
    title = f"{folder.name}/{entry.name}"
    if entry.base not in texts:
        raise BadCorpus(f"{title}: there is no right source `{entry.base}`.")
    text = texts[entry.base]
    # in its first line the base says what is unusual about it, which is not true here
    text = text.partition("\n")[2]
    try:
        return edited(text, entry.edits)
    except BadEdit as problem:
        raise BadCorpus(f"{title}: {problem}") from None


def _line_of(folder: Path, name: str, part: str, source: str) -> int:
    numbers = [
        number for number, line in enumerate(source.splitlines(), 1) if part in line
    ]
    if len(numbers) != 1:
        raise BadCorpus(f"{folder.name}/{name}: {len(numbers)} lines have `{part}`.")
    return numbers[0]
