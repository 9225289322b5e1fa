"""The documentation as a site, with search and the API reference: `python -m docs.build [folder]`, or `make docs`.

Pages lie in the site as they lie in the repository, so that the same links hold in both. What a page links to is shown
too: a source file as a page of code, a folder as a list of its files. What Zensical does not check is checked here:
links to what is no page, and the navigation. The search finds pages first, then the reference, and no sources.
"""

import json
import math
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
SETTINGS = DOCS / "zensical.toml"
THEME = DOCS / "theme"
REFERENCE = "docs/reference.html"
AROUND = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")]
# Served as they are; any other file that is no page is shown as code.
ASSETS = {".json", ".png", ".svg"}
# The target of a link within the repository, and the heading that it names there.
LINK = re.compile(r"(?<=\]\()(?!https?:|#)([^)#\s]+)(#[^)\s]*)?(?=\))")
CODE = re.compile(r"(^ *```.*?^ *```$|`[^`\n]+`)", re.DOTALL | re.MULTILINE)
FENCE = "`" * 8


def main(folder: Path) -> int:
    """Build the site into `folder`/site, in place of what was there. Returns 0 if every link and page is there."""
    shutil.rmtree(folder, ignore_errors=True)
    pages = Pages(folder / "pages")
    for page in [*AROUND, *sorted(DOCS.rglob("*.md"))]:
        pages.add(page)
    shutil.copy(SETTINGS, folder)
    shutil.copytree(THEME, folder / THEME.name)
    nav = tomllib.loads(SETTINGS.read_text())["project"]["nav"]
    problems = [*pages.broken, *navigation_problems(nav, pages.all)]
    for problem in problems:
        print(problem, file=sys.stderr)
    command = [sys.executable, "-m", "zensical", "build", "--strict", "--config-file", str(folder / SETTINGS.name)]
    built = subprocess.run(command, env=os.environ | {"PYTHONPATH": str(ROOT)})
    if built.returncode == 0:
        site = folder / "site"
        _rank(site, nav)
        print(f"the site: {site}/index.html; with search: {sys.executable} -m http.server --directory {site}")
    return 1 if problems else built.returncode


def _rank(site: Path, nav: list[dict[str, object]]) -> None:
    """Order the index of a site's search: of what matches a query alike, the first in it is shown first."""
    index = json.loads((site / "search.json").read_text())
    index["items"] = ranked(index["items"], pages=[page.replace(".md", ".html") for page in _leaves(nav)])
    text = json.dumps(index)
    (site / "search.json").write_text(text)
    # For a site that is opened from the disk.
    (site / "search.js").write_text(f"var __index = {text}")


def ranked(items: list[dict[str, Any]], *, pages: Sequence[str]) -> list[dict[str, Any]]:
    """Return what the search knows in the navigation's order, then other pages, and the reference last.

    Before the order counts how early a title has the query: the reference's are full names, such as
    `dueline.Client.cancel`, so that a section "Cancel" is shown before.
    """
    order = {page: number for number, page in enumerate(pages) if page != REFERENCE} | {REFERENCE: math.inf}

    def place(item: dict[str, Any]) -> float:
        page, _, name = item["location"].partition("#")
        if page == REFERENCE and name.startswith("dueline."):
            item["title"] = name
        return order.get(page, len(pages))

    return sorted(items, key=place)


class Pages:
    """The pages that a site is built of, and the links that lead to nothing."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.all: set[Path] = set()
        self.broken: list[str] = []

    def add(self, source: Path) -> Path:
        """Add a file or folder of the repository, once, and all that it links to. Returns where it is among them."""
        path = source.relative_to(ROOT)
        page = _page_of(path)
        if page not in self.all:
            self.all.add(page)
            target = self._folder / page
            target.parent.mkdir(parents=True, exist_ok=True)
            if path.suffix in ASSETS:
                shutil.copy(source, target)
            elif path.suffix == ".md" or source.is_dir():
                target.write_text(_meta(source) + self._linked(_text_of(source), path=path, page=page))
            else:
                target.write_text(_meta(source) + _code_of(source))
        return page

    def _linked(self, text: str, *, path: Path, page: Path) -> str:
        """Return a page's text with its links as they are among the pages."""
        base = ROOT / path if (ROOT / path).is_dir() else (ROOT / path).parent

        def link(match: re.Match[str]) -> str:
            source = (base / match[1]).resolve()
            if source.exists() and source.is_relative_to(ROOT):
                return os.path.relpath(self.add(source), page.parent) + (match[2] or "")
            self.broken.append(f"{path}: a link to {match[1]}, which does not exist")
            return match[0]

        parts = CODE.split(text)
        return "".join(part if index % 2 else LINK.sub(link, part) for index, part in enumerate(parts))


def navigation_problems(nav: list[dict[str, object]], pages: Iterable[Path]) -> list[str]:
    """Return the missing pages that the navigation names, and the pages of docs/ that it does not name."""
    named, there = set(_leaves(nav)), {str(page) for page in pages}
    # Decisions are listed on a page of their own.
    pages_of_docs = {str(page.relative_to(ROOT)) for page in DOCS.glob("*.md")}
    return [
        *(f"the navigation names {page}, which does not exist" for page in sorted(named - there)),
        *(f"the navigation does not name {page}" for page in sorted(pages_of_docs - named)),
    ]


def _leaves(nav: object) -> Iterator[str]:
    if isinstance(nav, str):
        yield nav
    elif isinstance(nav, dict | list):
        for part in nav.values() if isinstance(nav, dict) else nav:
            yield from _leaves(part)


def _page_of(path: Path) -> Path:
    if path == Path("README.md"):
        return Path("index.md")
    if (ROOT / path).is_dir():
        return path / "index.md"
    return path if path.suffix in ASSETS | {".md"} else path.with_name(f"{path.name}.md")


def _meta(source: Path) -> str:
    """Return what the site is to know of a page: which file one edits, and that no search finds sources."""
    path = source.relative_to(ROOT)
    lines = [f"source: {path}"] if source.is_file() else []
    if source.suffix != ".md" or path.parts[0] not in ("docs", path.name):
        lines.append("search: {exclude: true}")
    return "\n".join(["---", *lines, "---", "", ""])


def _text_of(source: Path) -> str:
    if source.is_file():
        return source.read_text()
    return f"# {source.relative_to(ROOT)}\n\n" + "".join(f"- [{title}]({name})\n" for name, title in _files(source))


def _code_of(source: Path) -> str:
    language = source.suffix[1:] or "text"
    return f"# {source.relative_to(ROOT)}\n\n{FENCE}{language}\n{source.read_text()}\n{FENCE}\n"


def _files(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield the names and titles of a folder's files: a page's title is its heading."""
    for file in sorted(file for file in folder.iterdir() if file.is_file()):
        yield file.name, file.read_text().partition("\n")[0].lstrip("# ") if file.suffix == ".md" else file.name


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else ROOT / ".local" / "docs"))
