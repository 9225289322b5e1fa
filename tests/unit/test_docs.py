"""README and each decision stay short, and pages name files that exist; tests/house.py counts all pages."""

import re

from tests.house import ROOT, files, pages


def test_readme_has_at_most_180_lines():
    assert len((ROOT / "README.md").read_text().splitlines()) <= 180


def test_decisions_have_at_most_300_words():
    words = {page.stem: len(page.read_text().split()) for page in files("docs/decisions", ".md")}
    assert {page: count for page, count in words.items() if count > 300} == {}


def test_documentation_names_files_that_exist():
    path = re.compile(r"`((?:bench|docs|dueline|functions|infra|local|tests)/[\w./-]+)`")
    named = [(page.name, name) for page in pages() for name in path.findall(page.read_text())]
    assert len(named) > 60
    assert [(page, name) for page, name in named if not (ROOT / name).exists()] == []
