"""What MkDocs is told of this repository: its hooks, named in mkdocs.yml.

Pages that forges show at the top of a repository (README, CONTRIBUTING, SECURITY,
CHANGELOG) are pages of the site, too, and links between them and docs/ lead there. So
are the texts of labs/texts/, with their pictures. The site's search is a user's: it has
no decisions and no evidence.
"""

from __future__ import annotations

import json
import logging
import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parent.parent
#: by their name in the repository, and in the site
TOP_PAGES = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "CHANGELOG.md": "changelog.md",
    "LICENSE": "LICENSE",
}
#: each folder is a page of its name, in the site's folder `texts`
TEXTS = ROOT / "labs" / "texts"
#: the objects of the page of JSON, whose keys mkdocstrings writes from the sources
OBJECT = re.compile(r"^- `(warpbook\w*(?:\.\w+)+)`\n", re.MULTILINE)
OBJECT_KEYS = r"""
::: \1
    options: {show_if_no_docstring: true, show_root_full_path: false, show_bases: false}
"""
#: what the site has, and its search has not
NOT_SEARCHED = ("adr/", "evidence/", "examples/", "benchmarks.html", "corpus.html")
#: a row of a table that has no head: the page would show its bars
BARE_ROW = re.compile(r"^(?:<p>|<li>)?\|.*", re.MULTILINE)
CODE = re.compile(r"<(pre|code).*?</\1>", re.DOTALL)
# a warning ends a strict build
log = logging.getLogger("mkdocs.hooks.docs_site")
#: its text, its target and its anchor
LINK = re.compile(r"\[([^\]]*)\]\(([^)#:\s]+)(#[^)\s]*)?\)")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Put the pages of a folder where the navigation names the folder."""
    config.nav = _expanded(config.nav, Path(config.docs_dir))
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that lie beside docs/."""
    for name, page in TOP_PAGES.items():
        added = File.generated(config, page, abs_src_path=str(ROOT / name))
        files.append(added)
    for file in sorted([*TEXTS.glob("*/text.md"), *TEXTS.glob("*/*.svg")]):
        name = f"{file.parent.name}.md" if file.suffix == ".md" else file.name
        page = f"texts/{name}"
        files.append(File.generated(config, page, abs_src_path=str(file)))
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Have links lead to pages of the site, from wherever the page lies."""
    source = page.file.src_uri
    if source.startswith("texts/"):
        text = source.removeprefix("texts/").removesuffix(".md").replace("_", "-")
        command = f"`warpbook labs quiz --text {text}`"
        return (
            f"{markdown}\n## Questions\n\n*GPU Labs* in JupyterLab's launcher has "
            f"them beside this text. In a terminal: {command}.\n"
        )
    if source == "reference/json.md":
        markdown = OBJECT.sub(OBJECT_KEYS, markdown)
    own = {site: name for name, site in TOP_PAGES.items()}.get(source, f"docs/{source}")
    folder = posixpath.dirname(own)

    def in_site(link: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(folder, link[2]))
        if target not in TOP_PAGES and not target.startswith("docs/"):
            # a file of the repository that the site does not have; a wrong link stays,
            # and the build fails
            return link[1] if (ROOT / target).exists() else link[0]
        page_there = TOP_PAGES.get(target, target.removeprefix("docs/"))
        path = posixpath.relpath(page_there, posixpath.dirname(source) or ".")
        return f"[{link[1]}]({path}{link[3] or ''})"

    return LINK.sub(in_site, markdown)


def on_page_content(html: str, page: Page, **_: Any) -> str:
    """Warn of rows of tables that a page shows as they are written."""
    for row in BARE_ROW.findall(CODE.sub("", html)):
        log.warning("%s: a row without a table: %s", page.file.src_uri, row[:60])
    return html


def on_post_build(config: MkDocsConfig) -> None:
    """Leave out of the search what users do not look for."""
    file = Path(config.site_dir) / "search" / "search_index.json"
    index = json.loads(file.read_text(encoding="utf-8"))
    index["docs"] = [
        entry
        for entry in index["docs"]
        if not entry["location"].startswith(NOT_SEARCHED)
    ]
    file.write_text(json.dumps(index), encoding="utf-8")


def _expanded(entry: Any, docs: Path) -> Any:
    """Replace "folder/" by its pages, README first, each under its own title."""
    if isinstance(entry, list):
        return [_expanded(item, docs) for item in entry]
    if isinstance(entry, dict):
        return {title: _expanded(item, docs) for title, item in entry.items()}
    if isinstance(entry, str) and entry.endswith("/"):
        pages = sorted((docs / entry).glob("*.md"), key=lambda page: page.name)
        pages.sort(key=lambda page: page.name != "README.md")
        return [page.relative_to(docs).as_posix() for page in pages]
    return entry
