"""The docs and README say what is stored, and nothing else."""

from dataclasses import replace

import pytest

from bench import bill, overload, scale
from bench.harness import Target, load, save
from bench.report import SCRIPTS, _more_expensive, _targets, reported


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


def test_scheduler_is_cheaper_below_a_rate_and_after_a_wait():
    ways, of_scheduler = [f"Dueline, {name}" for name in bill.USUAL_WAYS], {bill.SCHEDULER: 1.40}
    by_rate, by_wait = (
        {key: dict.fromkeys(ways, price) | of_scheduler for key, price in prices.items()}
        for prices in ({"1": 2.20, "100": 1.21}, {"1": 1.20, "30": 1.49})
    )
    # $1.20 and a dollar a job/s, to $1.40 less 14 million free ones; a cent a day.
    assert "| invoke, one by one | 32 | 21 |" in _more_expensive({"by_rate": by_rate, "by_wait": by_wait})


def test_missed_targets_are_bold():
    targets = [Target("speed", 3.0, 3.0, unit=" s"), Target("share", 2.0, 3.0, at_most=False)]
    assert (
        _targets({"cost": replace(load("cost"), targets=targets)})
        == "1 of 2 targets are met. Missed: **share: 2** (≥ 3)."
    )
