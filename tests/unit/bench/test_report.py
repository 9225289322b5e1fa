"""The docs and README say what is stored, and nothing else."""

import pytest

from bench import overload, scale
from bench.harness import load, save
from bench.report import SCRIPTS, reported


@pytest.mark.parametrize("path", reported(), ids=lambda path: path.name)
def test_the_docs_are_what_the_report_writes(path):
    assert path.read_text() == reported()[path], "write it again: python -m bench report"


@pytest.mark.parametrize("script", SCRIPTS)
def test_results_are_of_one_commit(script, tmp_path):
    result, first = load(script), load(SCRIPTS[0])
    # What was stored before made it dirty: the results are a part of the tree.
    assert result.on["commit"].removesuffix("-dirty") == first.on["commit"].removesuffix("-dirty")
    save(result, folder=tmp_path)
    assert load(script, folder=tmp_path) == result


@pytest.mark.parametrize(
    ("script", "run"), [(scale, lambda figures: figures["outages"][0]), (overload, lambda figures: figures["HTTP"])]
)
def test_one_lost_job_misses_a_target(script, run):
    figures = load(script.__name__.removeprefix("bench.")).figures
    matches = sum(target.is_met for target in script.targets(figures))
    run(figures)["lost"] = 1
    assert sum(target.is_met for target in script.targets(figures)) == matches - 1
