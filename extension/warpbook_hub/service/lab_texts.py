"""What the service shows of labs: their texts; no Python of a lab runs, or is loaded.

Texts are a course's own or ours. They are written in Markdown, and shown without any
HTML of theirs.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import mistune
from msgspec import Struct

from warpbook_labs.errors import BadLab
from warpbook_labs.lab.catalogues import catalogues, read_lab
from warpbook_labs.lab.files import HINT, UnfitFile, read_file
from warpbook_labs.lab.spec import Lab
from warpbook_labs.lab.texts import plain_math

#: names a folder with a course's own labs, each in a folder of its track
OWN_LABS = "WARPBOOK_HUB_LABS"
_PICTURES = {".svg": "image/svg+xml", ".png": "image/png"}
_PICTURE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,60}\.(svg|png)")
_MOST_PICTURE_BYTES = 4 << 20
_TEXTS = (".toml", ".md", ".py", ".cu")
_MOST_FILES = 100


class Picture(Struct, frozen=True):
    """A picture of a lab's text."""

    content_type: str
    content: bytes


def labs() -> list[Lab]:
    """Give all labs that can be published, in the order of their numbers."""
    by_id: dict[str, Lab] = {}
    for folder in _folders():
        lab = _read(folder)
        if lab is not None:
            by_id.setdefault(lab.id, lab)
    return sorted(by_id.values(), key=lambda lab: (lab.number, lab.id))


def lab_of(name: str) -> Lab | None:
    """Give a lab; None where there is none."""
    folder = _folder_of(name)
    return None if folder is None else _read(folder)


def starters(name: str) -> tuple[str, ...]:
    """Give what everybody begins with in a lab: nothing where there is none."""
    texts = (_file(name, file) for file in ("starter.cu", "starter.py"))
    return tuple(text for text in texts if text)


def text_html(name: str, pictures_at: str) -> str:
    """Give a lab's text as HTML; empty where there is none.

    Args:
        name: of the lab.
        pictures_at: the address of its pictures, with a slash at its end.
    """
    text = _file(name, "text.md")
    renderer = _Renderer(pictures_at)
    markdown = mistune.create_markdown(renderer=renderer, plugins=["table"])
    # the heading is the page's own
    text = re.sub(r"\A\s*# [^\n]*\n", "", text)
    return str(markdown(plain_math(text)))


def starter(name: str) -> str:
    """Give what a learner begins with; its suffix is that of the lab's language."""
    folder = _folder_of(name)
    files = [] if folder is None else sorted(folder.glob("starter.*"))
    return _file(name, files[0].name) if files else ""


def hint_count(name: str) -> int:
    """Count a lab's hints; a page opens none of them."""
    text = _file(name, "hints.md")
    return len(text.split(HINT)) if text.strip() else 0


def picture(name: str, file_name: str) -> Picture | None:
    """Give a picture of a lab's text; None where there is none."""
    folder = _folder_of(name)
    if folder is None or _PICTURE_NAME.fullmatch(file_name) is None:
        return None
    file = folder / file_name
    if not file.is_file() or file.is_symlink():
        return None
    with file.open("rb") as opened:
        content = opened.read(_MOST_PICTURE_BYTES)
    return Picture(_PICTURES[file.suffix], content)


def version_files(name: str) -> dict[str, str]:
    """Return the texts of a lab's folder, by file name: what a version consists of."""
    folder = _folder_of(name)
    files = [] if folder is None else sorted(folder.iterdir())[:_MOST_FILES]
    texts = {
        file.name: _file(name, file.name)
        for file in files
        if file.suffix in _TEXTS and file.is_file() and not file.is_symlink()
    }
    return {file: text for file, text in texts.items() if text}


class _Renderer(mistune.HTMLRenderer):
    """HTML without any of the text's own, with pictures of the lab only."""

    def __init__(self, pictures_at: str) -> None:
        super().__init__(escape=True)
        self._pictures_at = pictures_at

    def image(self, text: str, url: str, title: str | None = None) -> str:
        if _PICTURE_NAME.fullmatch(url) is None:
            return mistune.escape(text)
        return f'<img src="{self._pictures_at}{url}" alt="{mistune.escape(text)}">'

    def heading(self, text: str, level: int, **_: object) -> str:
        return f"<h{min(level + 1, 6)}>{text}</h{min(level + 1, 6)}>\n"


def _folders() -> Iterator[Path]:
    own = os.environ.get(OWN_LABS)
    for catalogue in (*([Path(own)] if own else []), *catalogues().folders):
        yield from sorted(file.parent for file in catalogue.glob("*/*/lab.toml"))


def _folder_of(name: str) -> Path | None:
    wanted = name.replace("-", "_")
    return next((folder for folder in _folders() if folder.name == wanted), None)


def _read(folder: Path) -> Lab | None:
    """Read a lab; None where it can't be."""
    try:
        return read_lab(folder / "lab.toml")
    except BadLab:
        return None


def _file(name: str, file_name: str) -> str:
    folder = _folder_of(name)
    if folder is None:
        return ""
    try:
        return read_file(folder / file_name)
    except UnfitFile:
        return ""
