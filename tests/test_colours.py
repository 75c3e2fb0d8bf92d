"""One colour, one meaning: tokens that can be seen, and no colour beside them."""

from __future__ import annotations

import re
import subprocess
from itertools import combinations
from typing import get_args

import pytest

from tests.programs import ROOT
from warpbook import colours
from warpbook_monitors.verdict_kinds import Kind

CSS = (ROOT / "frontend/style/colours.css").read_text()
LIGHT, DARK, REST = CSS.split("\n}\n", 2)
THEMES = {"light": LIGHT, "dark": DARK}
#: of JupyterLab's themes, where text and lines stand
SURFACES = {"light": ("#ffffff",), "dark": ("#111111", "#212121")}
#: words are written in them
STATES = ("good", "replay", "paused", "selected", "warning", "error")
#: what has no meaning that a person must tell: ink on a bar, a theme's own icon
INK = ("#000000", "#ffffff")


def tokens(theme: str) -> dict[str, str]:
    found = dict(re.findall(r"--wb-([\w-]+): (#\w{6});", LIGHT))
    return found | dict(re.findall(r"--wb-([\w-]+): (#\w{6});", THEMES[theme]))


def luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4
        for part in parts
    ]
    return sum(
        w * part for w, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True)
    )


def contrast(one: str, other: str) -> float:
    """Return it as WCAG 2 defines it, 1 to 21."""
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("theme", THEMES)
def test_each_meaning_is_seen_and_told_from_the_others(theme: str) -> None:
    found = tokens(theme)
    kinds = [name for name in found if name.startswith("kind-")]
    assert len(kinds) == 9
    for surface in SURFACES[theme]:
        # WCAG 2: 4.5 for words, 3 for what is drawn
        assert [n for n in STATES if contrast(found[n], surface) < 4.5] == []
        lines = [*kinds, *(name for name in found if name.startswith("series-"))]
        assert [n for n in lines if contrast(found[n], surface) < 3] == []
    names = (*STATES, *kinds)
    alike = [
        pair for pair in combinations(names, 2) if found[pair[0]] == found[pair[1]]
    ]
    assert alike == []


def test_a_kind_has_one_colour_on_the_page_and_in_html() -> None:
    of_kind = dict.fromkeys(get_args(Kind), "kind-none")
    for rule, token in re.findall(
        r"((?:[^{}]*)data-kind=[^{]*)\{\s*--wb-cause: var\(--wb-([\w-]+)\)", REST
    ):
        for kind in re.findall(r"data-kind='([\w-]+)'", rule):
            of_kind[kind] = token
    found = tokens("light")
    assert {kind: found[token] for kind, token in of_kind.items()} == {
        kind: colours.colour_of(kind) for kind in of_kind
    }
    bands = [value for name, value in found.items() if name.startswith("band-")]
    assert tuple(bands) == colours.BANDS
    # a saved report is read on either theme
    states = (colours.PLAIN, colours.WARNING, colours.ERROR, colours.GOOD)
    surfaces = ("#ffffff", "#212121")
    assert [
        (state, surface)
        for state in states
        for surface in surfaces
        if contrast(state, surface) < 3
    ] == []


def test_no_colour_stands_beside_the_tokens() -> None:
    places = ["frontend/src", "frontend/style", "extension/warpbook"]
    names = subprocess.run(
        ["git", "ls-files", *places], cwd=ROOT, capture_output=True, text=True
    ).stdout.split()
    # names of a timeline are only told apart
    owners = ("colours.css", "warpbook/colours.py", "core/icon.ts", "timeline/paint.ts")
    beside = [
        f"{name}: {colour}"
        for name in names
        if name.endswith((".css", ".ts", ".py")) and not name.endswith(owners)
        for line in (ROOT / name).read_text("utf-8").splitlines()
        if not line.lstrip().startswith(("*", "/**", "//", "#"))
        for colour in re.findall(
            r"['\"\s:(](#[0-9a-fA-F]{3,8}|rgba?\(|hsl\()(?!\w)", line
        )
        if colour not in INK
    ]
    assert beside == []
