"""How large the house is, and whether that keeps the bounds: `python -m tests.house` prints it.

A figure that does not keep its bound yet is held in house.json at what it was, and may only fall: after it fell,
`python -m tests.house lower` writes the lower limits. `python -m tests.house words dueline/cli` prints the words
that are counted as dialect there.
"""

import ast
import json
import math
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.vocabulary import dialect_of, nodes_of

ROOT = Path(__file__).parents[1]
HELD = Path(__file__).with_suffix(".json")
# The most lines of Python, JavaScript and CSS below a folder.
LINES = (
    {"dueline": 21_000, "local": 1_100, "bench": 4_500, "tests": 38_000}
    | {"dueline/client": 2_000, "dueline/worker": 2_900, "dueline/core": 4_800, "dueline/schedules": 1_800}
    | {"dueline/operations": 2_000, "dueline/aws": 2_400, "dueline/testing": 500, "dueline/config": 1_200}
    | {
        "dueline/functions": 2_700,
        "dueline/cdk": 2_500,
        "dueline/cli": 1_700,
        "dueline/console": 2_800,
        "tests/unit/bench": 500,
    }
)
ALL_LINES = 76_000
SOURCES = ("dueline", "local", "bench")
# What is deployed: rooms of their own, and no part of the library.
APART = ("dueline/functions", "dueline/cdk")
SHORT_FILE, LONG_PAGE, LONG_LINE, LONG_NAME = 80, 400, 120, 60


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure, and the most that it may be."""

    name: str
    value: float
    bound: float

    @property
    def is_ok(self) -> bool:
        return self.value <= self.bound


def figures() -> list[Figure]:
    """Count everything that has a bound."""
    return [*_lines(), *_files(), *_test_names(), *_documentation(), *_dialect()]


def held() -> dict[str, float]:
    """Return the figures that do not keep their bounds yet, as they may be until then."""
    return dict(json.loads(HELD.read_text()))


def risen(now: Iterable[Figure], most: Mapping[str, float]) -> dict[str, str]:
    """Return the figures that keep neither their bound nor what is held."""
    allowed = {each: max(each.bound, most.get(each.name, 0)) for each in now}
    return {each.name: f"{each.value:g} > {limit:g}" for each, limit in allowed.items() if each.value > limit}


@cache
def text_of(path: Path) -> str:
    return path.read_text()


def files(folder: str, *suffixes: str) -> list[Path]:
    """Return the files of a folder with these suffixes that are ours."""
    others = {"vendor", "node_modules", "__pycache__"}
    paths = sorted(path for path in (ROOT / folder).rglob("*") if path.suffix in suffixes)
    return [path for path in paths if not others & set(path.parts)]


def library(*suffixes: str) -> list[Path]:
    """Return the files of dueline but for what is deployed."""
    return [path for path in files("dueline", *suffixes) if room_of(path) not in APART]


def lines(paths: Iterable[Path]) -> int:
    return sum(len(text_of(path).splitlines()) for path in paths)


def room_of(path: Path) -> str:
    """Return the folder that a file belongs to: of dueline and of the tests, the one below."""
    parts = path.relative_to(ROOT).parts
    return "/".join(parts[:2] if parts[0] in ("dueline", "tests") and len(parts) > 2 else parts[:1])


def _lines() -> Iterator[Figure]:
    counts = {folder: lines(files(folder, ".py", ".js", ".css")) for folder in [*LINES, "docs", "examples"]}
    counts["dueline"] = lines(library(".py", ".js", ".css"))
    yield from (Figure(f"lines of {folder}", counts[folder], bound) for folder, bound in LINES.items())
    whole = sum(count for folder, count in counts.items() if "/" not in folder or folder in APART)
    yield Figure("lines of all", whole + lines([ROOT / "app.py"]), ALL_LINES)


def _files() -> Iterator[Figure]:
    python = library(".py")
    names = Counter(path.name for path in library(".py", ".js", ".css") if not path.name.startswith("__"))
    nodes = (node for path in python for node in nodes_of(path))
    classes = Counter(node.name for node in nodes if isinstance(node, ast.ClassDef))
    yield Figure("files of dueline", len(library(".py", ".js", ".css")), 170)
    yield Figure("imports of dueline, % of lines", round(100 * _import_lines(python) / lines(python), 1), 6)
    yield Figure("basenames that dueline has twice", sum(count > 1 for count in names.values()), 0)
    yield Figure("names of classes that dueline has twice", sum(count > 1 for count in classes.values()), 0)
    yield Figure("short files with one importer", len(short_files_with_one_importer()), 0)


def _import_lines(paths: Iterable[Path]) -> int:
    nodes = (node for path in paths for node in nodes_of(path))
    imports = [node for node in nodes if isinstance(node, ast.Import | ast.ImportFrom)]
    return sum((node.end_lineno or node.lineno) - node.lineno + 1 for node in imports)


def short_files_with_one_importer() -> list[str]:
    """Return the modules of under 80 lines that one other imports: each is a part of that one, or its own process."""
    paths = [path for folder in SOURCES for path in files(folder, ".py")]
    modules = {".".join(path.relative_to(ROOT).with_suffix("").parts): path for path in paths}
    importers: dict[str, set[str]] = {module: set() for module in modules}
    for importer, path in modules.items():
        for imported in imports_of(path):
            name = imported if imported in modules else imported.rpartition(".")[0]
            if name in modules and name != importer:
                importers[name].add(importer)
    short = [name for name, path in modules.items() if lines([path]) < SHORT_FILE and path.stem != "__init__"]
    return [name for name in short if len(importers[name]) == 1]


def imports_of(path: Path) -> Iterator[str]:
    """Yield the names of the modules that a file imports, and those of what it imports from them."""
    for node in nodes_of(path):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _test_names() -> Iterator[Figure]:
    nodes = (node for path in files("tests", ".py") for node in nodes_of(path))
    names = [node.name for node in nodes if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")]
    lengths = [len(name) for name in names]
    yield Figure("test names: mean of characters", round(sum(lengths) / len(lengths), 1), 40)
    yield Figure("test names: characters of the longest", max(lengths), LONG_NAME)
    yield Figure(f"test names over {LONG_NAME} characters", sum(length > LONG_NAME for length in lengths), 0)


def pages() -> list[Path]:
    """Return what people read: the pages of docs/, decisions included, those of the root, and tables beside tests."""
    return [*sorted(ROOT.glob("*.md")), *files("docs", ".md"), *files("tests", ".md")]


def _documentation() -> Iterator[Figure]:
    texts = {page: text_of(page) for page in pages()}
    # With a letter or a digit: the bars of a table are no words.
    words = sum(any(map(str.isalnum, word)) for text in texts.values() for word in text.split())
    yield Figure("words of the documentation", words, 40_000)
    long = [page for page, text in texts.items() if len(text.splitlines()) > LONG_PAGE]
    yield Figure(f"pages over {LONG_PAGE} lines", len(long), 0)
    yield Figure(f"lines over {LONG_LINE} characters", sum(map(len, map(long_lines, pages()))), 0)


def long_lines(page: Path) -> list[str]:
    """Return the lines of a page that are too long, those of tables left out."""
    return [each for each in text_of(page).splitlines() if len(each) > LONG_LINE and not each.lstrip().startswith("|")]


def dialect() -> dict[str, list[str]]:
    """Return what each room says in words of its own, each as `file:line: word`."""
    paths = [path for folder in [*SOURCES, "tests", "docs", "examples"] for path in files(folder, ".py", ".js", ".md")]
    rooms: dict[str, list[str]] = {}
    for path in [*paths, *ROOT.glob("*.md")]:
        if not path.stem.endswith("vocabulary"):
            room = "docs" if path.suffix == ".md" else room_of(path)
            rooms.setdefault(room, []).extend(f"{path.relative_to(ROOT)}:{each}" for each in dialect_of(path))
    return rooms


def _dialect() -> list[Figure]:
    return [Figure(f"dialect in {room}", len(words), 0) for room, words in sorted(dialect().items())]


def main(arguments: Sequence[str]) -> int:
    """Print the figures, or the dialect of a room; `lower` holds figures that fell. Return 1 if one rose."""
    if arguments[:1] == ["words"]:
        print("\n".join(dialect()[arguments[1]]))
        return 0
    now, most = figures(), held()
    for each in now:
        state = "ok" if each.is_ok else f"not yet, held at {most.get(each.name, each.value):,g}"
        print(f"{each.name:<42} {each.value:>9,g}  at most {each.bound:>7,g}  {state}")
    if arguments == ["lower"]:
        # In hundreds, so that a longer name, which may break a line, is no rise.
        ceiling = {each.name: -(-each.value // 100) * 100 if "lines of" in each.name else each.value for each in now}
        lower = {each.name: min(ceiling[each.name], most.get(each.name, math.inf)) for each in now if not each.is_ok}
        HELD.write_text(json.dumps(lower, indent=2) + "\n")
    return int(bool(risen(now, most)))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
