"""The docs and README tell what is stored, and nothing else."""

import re

import pytest

from bench.report import reported
from bench.results import STORED, is_current, load
from bench.run import PARTS

STORED_PARTS = [(part, load(part.name)) for part in PARTS if is_current(part)]
NAMES = [part.name for part, _ in STORED_PARTS]


@pytest.mark.parametrize("path", reported(PARTS, folder=STORED), ids=lambda path: path.name)
def test_what_is_told_is_what_is_stored(path):
    assert path.read_text() == reported(PARTS, folder=STORED)[path], "tell it anew: python -m bench report"


@pytest.mark.parametrize("part", PARTS, ids=[part.name for part in PARTS])
def test_each_part_is_told_from_what_is_stored(part):
    if not is_current(part):
        pytest.skip("it has not been measured since its figures have another format: make bench")


@pytest.mark.parametrize(("part", "result"), STORED_PARTS, ids=NAMES)
def test_what_is_stored_is_of_a_full_run_of_all_parts(part, result):
    assert not result.quick
    assert _commit(result) == _commit(STORED_PARTS[0][1])


@pytest.mark.parametrize(("part", "result"), STORED_PARTS, ids=NAMES)
def test_what_falls_short_says_why(part, result):
    assert not [target.what for target in result.measured.targets if not target.is_met and not target.why]


@pytest.mark.parametrize(("part", "result"), STORED_PARTS, ids=NAMES)
def test_each_picture_that_is_shown_is_stored_and_no_other(part, result):
    shown = {f"{part.name}-{name}.svg" for name in _pictures(part.markdown(result.figures))}
    assert {path.name for path in STORED.glob(f"{part.name}-*.svg")} == shown


def _commit(result):
    # What was stored before made it so: the results are a part of the tree.
    return result.on["commit"].removesuffix("-dirty")


def _pictures(text):
    return re.findall(r"!\[[^]]*\]\(\S+/\w+-(\S+)\.svg\)", text)
