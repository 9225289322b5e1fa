"""What the proof by mutation rests on; `python -m tests.simulation mutations` runs the proof itself."""

import shutil
from pathlib import Path

from tests.simulation.mutation import CAUGHT, ROOT, prove
from tests.simulation.mutations import MUTATIONS

# Caught within a few runs. `make soak-short`, which CI runs too, proves all of them.
QUICK = "TTL is not switched off"


def test_every_mutation_applies(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "dueline", tmp_path / "dueline", ignore=shutil.ignore_patterns("__pycache__"))
    for mutation in MUTATIONS:
        for edit in mutation.edits:
            edit.apply(tmp_path)
            compile((tmp_path / "dueline" / edit.file).read_text(), edit.file, "exec")
        for edit in mutation.edits:
            shutil.copy(ROOT / "dueline" / edit.file, tmp_path / "dueline" / edit.file)


def test_page_has_each_mutation_below_its_promise() -> None:
    _, *lists = CAUGHT.read_text().split("\n## ")
    documented = {
        line.rpartition(":")[0].removeprefix("- "): promise
        for promise, *lines in map(str.splitlines, lists)
        for line in filter(None, lines)
    }
    assert {each.name for each in MUTATIONS} == documented.keys()
    assert [each.name for each in MUTATIONS if documented[each.name] not in each.breaks] == []


def test_docs_have_the_number_of_mutations() -> None:
    page = (ROOT / "docs" / "reliability.md").read_text()
    assert f"{len(MUTATIONS)} rules of the protocol are broken, one at a time" in page


def test_mutation_is_caught_by_its_promise() -> None:
    (mutation,) = [each for each in MUTATIONS if each.name == QUICK]
    caught = prove(mutation, number=100)
    assert caught is not None
    assert caught.promise in mutation.breaks
