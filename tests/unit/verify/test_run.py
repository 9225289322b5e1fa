"""A run of checks: each has a result whatever happens, and what it costs is told before."""

import json
import math
import re
import time
from dataclasses import fields, replace
from pathlib import Path
from threading import Barrier

import pytest

from dueline.config.deployment import load
from dueline.errors import Unavailable
from dueline.verify.bound import NONE, Bound, Gap
from dueline.verify.check import Check, Found, NotJudged, Started, Verdict
from dueline.verify.checks import CHECKS
from dueline.verify.price import PRICES, Sends
from dueline.verify.report import Report
from dueline.verify.run import Run, price
from dueline.verify.sandbox import MOVED, NAME, PARTITIONS_OF_MOVED, QUEUES
from dueline.verify.trial import Scale
from tests.builders import NOW
from tests.unit.verify.sandbox import FakeSandbox

ROOT = Path(__file__).parents[3]


class Unwatched:
    def __getattr__(self, _):
        return lambda *_: None


def a_check(name="one", *, run=lambda _: Found(figures={"lost": 0}), **overrides):
    given = {"promise": "nothing is lost", "bounds": {"lost": NONE}, "sends": lambda _: Sends()}
    return Check(name=name, run=run, **(given | overrides))


def a_run(*checks, sandbox=None):
    return Run(sandbox=sandbox or FakeSandbox(), checks=checks, scale=Scale.QUICK, name="r")


def results_of(*checks, sandbox=None):
    return list(a_run(*checks, sandbox=sandbox).results(Unwatched()))


def local():
    sandbox = FakeSandbox()
    sandbox.is_local = True
    return sandbox


def raising(error):
    def run(_):
        raise error

    return run


@pytest.mark.parametrize(
    ("error", "verdict"),
    [
        (NotJudged("no worker is installed"), Verdict.NOT_JUDGED),
        (Started("look again tomorrow"), Verdict.STARTED),
        (Unavailable("AWS is down"), Verdict.FAILED),
        (ZeroDivisionError("a defect of the check"), Verdict.FAILED),
    ],
)
def test_what_a_check_raises_is_its_own_result_and_the_next_one_runs(error, verdict):
    first, second = results_of(a_check("one", run=raising(error)), a_check("two"))
    assert first.verdict is verdict
    assert str(error) in first.why
    assert second.verdict is Verdict.PASSED


def test_what_a_local_aws_cannot_show_is_not_passed_there():
    (result,) = results_of(a_check(run=raising(AssertionError("it must not run")), gap=Gap.IAM), sandbox=local())
    assert (result.verdict, result.why) == (Verdict.NOT_JUDGED, Gap.IAM)


def test_a_figure_that_a_local_aws_cannot_show_is_told_and_not_judged():
    bounds = {"lost": NONE, "p95": Bound(most=1, gap=Gap.PACE)}
    late = a_check(bounds=bounds, run=lambda _: Found(figures={"lost": 0, "p95": 7}))
    (here,), (there,) = results_of(late, sandbox=local()), results_of(late)
    assert here.verdict is Verdict.PASSED
    assert "p95" in here.why
    assert there.verdict is Verdict.FAILED


def test_a_check_of_which_nothing_can_be_judged_has_not_passed():
    (result,) = results_of(a_check(bounds={"lost": replace(NONE, gap=Gap.PACE)}), sandbox=local())
    assert result.verdict is Verdict.NOT_JUDGED


def test_a_figure_of_nothing_breaks_its_bound():
    (result,) = results_of(a_check(run=lambda _: Found(figures={"lost": math.nan})))
    assert result.verdict is Verdict.FAILED


def test_lanes_run_at_once_and_what_has_none_after_them():
    meet, order = Barrier(2, timeout=60), []

    def together(_):
        meet.wait()
        order.append("lane")
        return Found(figures={"lost": 0})

    def alone(_):
        order.append("alone")
        return Found(figures={"lost": 0})

    results = results_of(
        a_check("alone", run=alone), a_check("one", run=together, lane="a"), a_check("two", run=together, lane="b")
    )
    assert [result.verdict for result in results] == [Verdict.PASSED] * 3
    assert order == ["lane", "lane", "alone"]


def test_whoever_stops_a_run_stops_the_lanes():
    sandbox = FakeSandbox()
    ended = []

    def forever(trial):
        try:
            while True:
                trial.sleep(0)
                time.sleep(0.001)
        finally:
            ended.append(trial)

    run = a_run(a_check("quick", lane="a"), a_check("forever", run=forever, lane="b"), sandbox=sandbox).results(
        Unwatched()
    )
    assert next(run).check == "quick"
    run.close()
    assert len(ended) == 1


def test_a_full_run_costs_under_a_dollar_and_more_than_a_quick_one():
    assert 0 < price(CHECKS, Scale.QUICK) < price(CHECKS, Scale.FULL) < 1


def test_prices_are_those_that_are_written_down_with_their_sources():
    written = json.loads((ROOT / "bench" / "prices.json").read_text())["prices"]
    assert {name: written[name]["value"] for name in PRICES} == PRICES


def test_each_thing_that_is_sent_costs_something():
    assert all(Sends(**{each.name: 1e6}).dollars > 0.1 for each in fields(Sends))


def test_the_sandbox_that_is_shipped_has_the_queues_that_checks_use():
    deployment = load(ROOT / "dueline" / "verify" / "queues.yaml")
    assert (deployment.name, tuple(deployment.queues)) == (NAME, QUEUES)
    assert deployment.queues[MOVED].partitions == PARTITIONS_OF_MOVED


def test_every_check_is_told_of_in_the_documentation():
    page = (ROOT / "docs" / "verify.md").read_text()
    assert [check.name for check in CHECKS if f"| `{check.name}` |" not in page] == []


# The report


def a_report(*results, **overrides):
    given = {"begun": NOW, "is_whole": True, "left": (), "version": "0.1.0"}
    return Report.of(a_run(a_check()), results, **(given | overrides))


def test_a_report_has_every_figure_its_bound_and_why_it_failed(tmp_path):
    found = Found(figures={"lost": 3}, notes=["it rained | a lot"])
    (result,) = results_of(a_check(run=lambda _: found))
    markdown, document = (file.read_text() for file in a_report(result).write(tmp_path / "new"))
    assert "| one | **failed** | nothing is lost | lost: 3 , must be 0 |" in markdown
    assert "it rained \\| a lot" in markdown
    (check,) = json.loads(document)["checks"]
    assert check["figures"] == [{"name": "lost", "value": 3, "holds": False, "least": 0, "most": 0, "unit": ""}]
    assert (check["verdict"], json.loads(document)["good"]) == ("failed", False)


def test_a_report_tells_no_account(tmp_path):
    error = Unavailable("arn:aws:iam::123456789012:role/x in dueline-verify-payloads-123456789012-eu-central-1")
    (result,) = results_of(a_check(run=raising(error)))
    texts = [file.read_text() for file in a_report(result).write(tmp_path)]
    assert all("<account>" in text and not re.search(r"\d{12}", text) for text in texts)


def test_a_figure_of_nothing_is_null_in_json(tmp_path):
    (result,) = results_of(a_check(run=lambda _: Found(figures={"lost": math.nan})))
    *_, file = a_report(result).write(tmp_path)
    (check,) = json.loads(file.read_text(), parse_constant=lambda name: pytest.fail(name))["checks"]
    assert check["figures"][0]["value"] is None


@pytest.mark.parametrize("given", [{"is_whole": False}, {"left": ["a role: AccessDenied"]}])
def test_a_report_of_a_run_that_was_interrupted_or_left_something_is_not_good(given):
    (result,) = results_of(a_check())
    assert a_report(result).is_good
    assert not a_report(result, **given).is_good
