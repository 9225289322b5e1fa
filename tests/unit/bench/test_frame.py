"""What holds the stored results, the docs and README together."""

import json
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from bench import __main__ as command
from bench.part import Bench, Measured, Part, Target
from bench.report import before, marked, targets
from bench.results import Result, is_current, load, pairs, save


def a_part(**overrides):
    given = {
        "name": "speed",
        "title": "Speed",
        "measure": lambda bench: Measured(figures={"quick": bench.quick}, ratios={"of light": 0.5}),
        "markdown": lambda figures: f"quick: {figures['quick']}",
        "pictures": lambda figures: {"all": f"<svg>{json.dumps(figures)}</svg>"},
    }
    return Part(**(given | overrides))


def a_result(*, ratio=0.5, targets=()):
    measured = Measured(figures={"quick": False}, ratios={"of light": ratio}, targets=tuple(targets))
    return Result(part="speed", quick=False, on={"cores": "2"}, seconds=60.0, measured=measured)


def a_target(**overrides):
    return Target(**({"what": "speed", "got": 2.0, "bound": 3.0, "unit": " s"} | overrides))


def test_a_result_is_read_back_as_it_was_saved_with_its_pictures_beside_it(tmp_path):
    result = a_result(targets=[a_target()])
    save(result, a_part(), folder=tmp_path)
    assert load("speed", folder=tmp_path) == result
    assert (tmp_path / "speed-all.svg").read_text() == '<svg>{"quick": false}</svg>'


def test_a_picture_that_is_no_longer_drawn_does_not_stay(tmp_path):
    save(a_result(), a_part(pictures=lambda figures: {"old": ""}), folder=tmp_path)
    save(a_result(), a_part(), folder=tmp_path)
    assert [path.name for path in tmp_path.glob("*.svg")] == ["speed-all.svg"]


@pytest.mark.parametrize(
    ("ratio", "repeats"), [(0.5, True), (0.549, True), (0.551, False), (0.456, True), (0.45, False)]
)
def test_a_ratio_repeats_when_the_larger_exceeds_the_smaller_by_10_percent_at_most(tmp_path, ratio, repeats):
    for folder, each in (("one", 0.5), ("other", ratio)):
        save(a_result(ratio=each), a_part(), folder=tmp_path / folder)
    (pair,) = pairs(["speed"], tmp_path / "one", tmp_path / "other")
    assert pair.repeats is repeats


def test_a_section_takes_the_place_of_what_stands_between_its_marks_and_of_nothing_else():
    text = "before\n<!-- a -->\nold\n<!-- /a -->\nbetween\n<!-- b --><!-- /b -->\nafter"
    assert marked(text, {"a": r"new \1", "b": "2"}) == (
        "before\n<!-- a -->\nnew \\1\n<!-- /a -->\nbetween\n<!-- b -->\n2\n<!-- /b -->\nafter"
    )


def test_a_mark_that_is_missing_is_named():
    with pytest.raises(KeyError, match="<!-- cost -->"):
        marked("<!-- cost --> without an end", {"cost": "1"})


@pytest.mark.parametrize(
    ("target", "told"),
    [
        (a_target(), "| speed | ≤ 3 s | 2 s | yes |"),
        (a_target(got=3.0), "| speed | ≤ 3 s | 3 s | yes |"),
        (a_target(got=4.0, why="it is slow"), "| speed | ≤ 3 s | 4 s | **no**: it is slow |"),
        (a_target(at_most=False, why="it is slow"), "| speed | ≥ 3 s | 2 s | **no**: it is slow |"),
        (a_target(at_most=False, got=3.0), "| speed | ≥ 3 s | 3 s | yes |"),
    ],
)
def test_a_target_is_told_with_its_verdict(target, told):
    assert told in targets({"speed": a_result(targets=[target])}).splitlines()


def test_what_was_worked_on_is_told_with_what_it_was_before_and_in_no_other_table():
    results = {"speed": a_result(targets=[a_target(before=9.0)])}
    assert "| speed | 9 s | ≤ 3 s | 2 s | yes |" in before(results).splitlines()
    assert "speed" not in targets(results)


def test_what_is_missing_or_stored_in_another_format_is_not_told(tmp_path):
    assert not is_current(a_part(), folder=tmp_path)
    save(a_result(), a_part(), folder=tmp_path)
    assert is_current(a_part(), folder=tmp_path)
    assert not is_current(a_part(format=2), folder=tmp_path)


@pytest.fixture
def commanded(monkeypatch, tmp_path):
    part = a_part(measure=lambda bench: _measure(bench))
    monkeypatch.setattr(command, "PARTS", (part, replace(part, name="other")))
    monkeypatch.setattr(command, "NAMES", ["speed", "other"])
    monkeypatch.setattr(command, "NEEDED", ())
    return lambda *words: CliRunner().invoke(command.app, list(words), env={"COLUMNS": "200"})


def _measure(bench: Bench) -> Measured:
    bench.progress("measure", 1, 2)
    assert bench.scratch.is_dir()
    return Measured(figures={"quick": bench.quick}, ratios={"of light": 0.5})


def test_the_command_measures_what_it_is_told_to_and_writes_it_where_it_is_told(commanded, tmp_path):
    done = commanded("run", "speed", "--quick", "--out", str(tmp_path))
    assert done.exit_code == 0, done.output
    assert "quick: True" in done.output
    assert [path.name for path in sorted(tmp_path.iterdir())] == ["speed-all.svg", "speed.json"]
    assert load("speed", folder=tmp_path).on["Python"]


def test_a_part_that_there_is_not_is_refused_with_those_that_there_are(commanded, tmp_path):
    done = commanded("run", "sped", "--out", str(tmp_path))
    assert done.exit_code == 2
    assert "there is no part 'sped': choose from speed, other" in done.output


def test_nothing_is_measured_before_what_draws_it_is_installed(commanded, monkeypatch, tmp_path):
    monkeypatch.setattr(command, "NEEDED", ("pytest", "matplotlob"))
    done = commanded("run", "--out", str(tmp_path / "out"))
    assert done.exit_code == 2
    assert "matplotlob is not installed: pip install -r bench/requirements.txt" in done.output
    assert not (tmp_path / "out").exists()


def test_comparing_exits_with_1_when_a_ratio_does_not_repeat(commanded, tmp_path):
    for folder, ratio in (("one", 0.5), ("two", 0.5), ("three", 0.9)):
        save(a_result(ratio=ratio), a_part(), folder=tmp_path / folder)
    same, apart = (
        commanded("compare", str(tmp_path / "one"), str(tmp_path / to), "--part", "speed") for to in ("two", "three")
    )
    assert (same.exit_code, apart.exit_code) == (0, 1)
    assert "no: 80%" in apart.output


def test_comparing_says_which_run_has_no_result_of_a_part(commanded, tmp_path):
    save(a_result(ratio=0.5), a_part(), folder=tmp_path / "one")
    done = commanded("compare", str(tmp_path / "one"), str(tmp_path / "two"), "--part", "speed")
    assert done.exit_code == 2
    assert "two has no result of speed" in done.output.replace("\n", " ")
