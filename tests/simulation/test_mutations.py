"""What the proof by mutation rests on; `python -m tests.simulation mutations` runs the proof itself."""

import shutil
from pathlib import Path

import pytest

from tests.simulation.mutations import MUTATIONS
from tests.simulation.proof import ROOT, prove

# Caught within a few runs, one for each promise.
QUICK = ["no fence check after the write", "a cancellation is not carried over a page"]
QUICK += ["DelaySeconds is rounded down", "no note of what the late path sent", "a change cancels nothing"]
QUICK.append("TTL is not switched off")


def test_every_mutation_finds_what_it_breaks(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "dueline", tmp_path / "dueline", ignore=shutil.ignore_patterns("__pycache__"))
    for mutation in MUTATIONS:
        for edit in mutation.edits:
            edit.apply(tmp_path)
            compile((tmp_path / "dueline" / edit.file).read_text(), edit.file, "exec")
        for edit in mutation.edits:
            shutil.copy(ROOT / "dueline" / edit.file, tmp_path / "dueline" / edit.file)


def test_the_docs_tell_by_which_promise_each_mutation_is_caught() -> None:
    table = (ROOT / "docs" / "reliability.md").read_text()
    told = {each.name: any(f"| {each.name} | {promise} |" in table for promise in each.breaks) for each in MUTATIONS}
    assert [name for name, is_told in told.items() if not is_told] == []


@pytest.mark.parametrize("name", QUICK)
def test_a_mutation_is_caught_by_the_promise_that_it_names(name: str) -> None:
    (mutation,) = [each for each in MUTATIONS if each.name == name]
    caught = prove(mutation, number=100)
    assert caught is not None
    assert caught.promise in mutation.breaks
