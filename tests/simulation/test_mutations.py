"""What the proof by mutation rests on; `python -m tests.simulation mutations` runs the proof itself."""

import shutil
from pathlib import Path

import pytest

from tests.simulation.mutations import MUTATIONS, Mutation
from tests.simulation.proof import ROOT, prove

NAMED = pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name.replace(" ", "-"))
# Caught within a few runs, one for each promise.
QUICK = ["the cursor goes past an unsent job", "a promise is noted before the fence is known"]
QUICK += ["DelaySeconds is rounded down", "the lease is taken without a condition"]


@NAMED
def test_a_mutation_finds_what_it_breaks(mutation: Mutation, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "dueline", tmp_path / "dueline")
    for edit in mutation.edits:
        edit.apply(tmp_path)
        compile((tmp_path / "dueline" / edit.file).read_text(), edit.file, "exec")


@NAMED
def test_the_docs_tell_by_which_promise_a_mutation_is_caught(mutation: Mutation) -> None:
    table = (ROOT / "docs" / "reliability.md").read_text()
    assert any(f"| {mutation.name} | {promise} |" in table for promise in mutation.breaks)


@pytest.mark.parametrize("name", QUICK)
def test_a_mutation_is_caught_by_the_promise_that_it_names(name: str) -> None:
    (mutation,) = [each for each in MUTATIONS if each.name == name]
    caught = prove(mutation, number=500)
    assert caught is not None
    assert caught.promise in mutation.breaks
