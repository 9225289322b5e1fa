"""Put what was measured into docs/benchmarks.md, docs/cost.md and README.md.

Between marks: `<!-- cost -->` and `<!-- /cost -->`.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path

from bench.cost.example import example
from bench.headline import headline, on_time
from bench.part import Part, Target
from bench.results import Result, is_current, load
from bench.tables import table
from local.template import ROOT

DOCS = ROOT / "docs" / "benchmarks.md"
README = ROOT / "README.md"
COST = ROOT / "docs" / "cost.md"
_WHOLE_FROM, _PERCENT_FROM = 1000, 10


def reported(parts: Sequence[Part], *, folder: Path) -> dict[Path, str]:
    """Return the files as they are to be, with what is stored in a folder.

    The section of a part stays as it is while its result is missing, or in a format that is told no more.
    """
    told = [part for part in parts if is_current(part, folder=folder)]
    results = {part.name: load(part.name, folder=folder) for part in told}
    docs = {part.name: part.markdown(results[part.name].figures) for part in told}
    readme = {}
    if len(told) == len(parts):
        docs |= {"targets": targets(results), "before": before(results), "machine": machines(results)}
        readme = {"figures": f"{headline(results)}\n\n{on_time(results['lateness'])}"}
    costs = {"example": example(results["cost"].figures)} if "cost" in results else {}
    sections = {DOCS: docs, README: readme, COST: costs}
    return {path: marked(path.read_text(), told) for path, told in sections.items()}


def marked(text: str, sections: dict[str, str]) -> str:
    """Return a text whose marked sections are these. Raises KeyError for a mark that is missing.

    >>> print(marked("<!-- a -->old<!-- /a -->", {"a": "new"}))
    <!-- a -->
    new
    <!-- /a -->
    """
    for name, section in sections.items():
        between = re.compile(rf"<!-- {name} -->.*?<!-- /{name} -->", re.DOTALL)
        if not between.search(text):
            raise KeyError(f"there is no <!-- {name} --> with its <!-- /{name} -->")
        before, after = between.split(text, maxsplit=1)
        text = f"{before}<!-- {name} -->\n{section}\n<!-- /{name} -->{after}"
    return text


def targets(results: Mapping[str, Result]) -> str:
    """Return a table of targets but those of `before`: what was to be reached, what was, and why not."""
    rows = [
        (target.what, _bound(target), _got(target), _verdict(target))
        for target in _targets(results)
        if target.before is None
    ]
    return table(("target", "bound", "measured", "reached"), rows)


def before(results: Mapping[str, Result]) -> str:
    """Return a table of what was worked on last: what it was before, was to reach, and is."""
    rows = [
        (target.what, f"{_number(target.before)}{target.unit}", _bound(target), _got(target), _verdict(target))
        for target in _targets(results)
        if target.before is not None
    ]
    return table(("", "before", "to reach", "measured", "reached"), rows)


def _targets(results: Mapping[str, Result]) -> Iterable[Target]:
    return chain.from_iterable(result.measured.targets for result in results.values())


def _got(target: Target) -> str:
    return f"{_number(target.got)}{target.unit}"


def _bound(target: Target) -> str:
    return f"{'≤' if target.at_most else '≥'} {_number(target.bound)}{target.unit}"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= _WHOLE_FROM else f"{value:.5g}" if value > _PERCENT_FROM else f"{value:.3g}"


def _verdict(target: Target) -> str:
    return "yes" if target.is_met else f"**no**: {target.why}"


def machines(results: Mapping[str, Result]) -> str:
    """Return on what, when and how long the parts were measured."""
    one = next(iter(results.values()))
    seconds = sum(result.seconds for result in results.values())
    told = [*one.on.items(), ("the whole run", f"{seconds / 60:.1f} minutes")]
    return table(("on", "what"), told)
