"""The report of a run, to attach to an issue: Markdown for people, JSON for machines, no account's number in either."""

import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Self

from dueline.model import instant
from dueline.verify.check import Measure, Result, Verdict
from dueline.verify.run import Run
from dueline.verify.trial import Scale

# As ARNs and the names of buckets have it.
_ACCOUNT = re.compile(r"(?<!\d)\d{12}(?!\d)")


@dataclass(frozen=True, kw_only=True, slots=True)
class Report:
    """What a run was about, and what came of it. `left` names what it could not remove."""

    run: str
    version: str
    deployment: str
    region: str
    is_local: bool
    scale: Scale
    begun: datetime
    ended: datetime
    dollars: float
    results: Sequence[Result]
    is_whole: bool
    left: Sequence[str] = ()

    @classmethod
    def of(
        cls, run: Run, results: Sequence[Result], *, begun: datetime, is_whole: bool, left: Sequence[str], version: str
    ) -> Self:
        """Return the report of a run that ended now, whole or interrupted."""
        return cls(
            run=run.name,
            version=version,
            deployment=run.sandbox.name,
            region=run.sandbox.region,
            is_local=run.sandbox.is_local,
            scale=run.scale,
            begun=begun,
            ended=run.sandbox.clock.now(),
            dollars=run.dollars,
            results=results,
            is_whole=is_whole,
            left=left,
        )

    @property
    def is_good(self) -> bool:
        return self.is_whole and not self.left and all(each.verdict is not Verdict.FAILED for each in self.results)

    def write(self, folder: Path) -> list[Path]:
        """Write both forms into a folder; return the files."""
        folder.mkdir(parents=True, exist_ok=True)
        texts = {"md": self.markdown(), "json": json.dumps(self.document(), indent=1) + "\n"}
        files = [folder / f"verify-{self.run}.{kind}" for kind in texts]
        for file, text in zip(files, texts.values(), strict=True):
            file.write_text(_without_accounts(text))
        return files

    def document(self) -> dict[str, Any]:
        return {
            "run": self.run,
            "dueline": self.version,
            "deployment": self.deployment,
            "region": self.region,
            "local": self.is_local,
            "scale": self.scale.value,
            "begun": instant.text(self.begun),
            "ended": instant.text(self.ended),
            "dollars_at_most": round(self.dollars, 4),
            "good": self.is_good,
            "whole": self.is_whole,
            "left": list(self.left),
            "checks": [document_of(result) for result in self.results],
        }

    def markdown(self) -> str:
        where = "a local AWS, which proves less than AWS does" if self.is_local else self.region
        counts = Counter(result.verdict for result in self.results)
        told = ", ".join(f"{count} {verdict}" for verdict, count in counts.items())
        lines = [
            f"# dueline verify: {told or 'nothing was run'}",
            "",
            f"Dueline {self.version}, deployment `{self.deployment}`, in {where}; scale {self.scale}; run `{self.run}`,"
            f" {instant.text(self.begun)} to {instant.text(self.ended)}; ${self.dollars:.2f} at most.",
            *([] if self.is_whole else ["", "**It was interrupted: the checks that are missing were not run.**"]),
            *([] if not self.left else ["", f"**Left behind:** {', '.join(self.left)}"]),
            "",
            "| check | verdict | what it proves | why |",
            "|---|---|---|---|",
            *(
                f"| {each.check} | {_marked(each.verdict)} | {each.promise} | {_cell(each.why)} |"
                for each in self.results
            ),
        ]
        return "\n".join([*lines, *(line for each in self.results for line in _section(each))]) + "\n"


def _section(result: Result) -> list[str]:
    if not (result.measures or result.notes):
        return []
    table = ["| figure | measured | must be | |", "|---|---:|---|---|"] if result.measures else []
    rows = [
        f"| {each.name} | {each.value:,.6g} {each.bound.unit} | {each.bound} | {_word(each)} |"
        for each in result.measures
    ]
    notes = [f"- {_cell(note)}" for note in result.notes]
    return ["", f"## {result.check}, {result.seconds:,.0f} s", "", *table, *rows, *([""] if notes else []), *notes]


def _word(measure: Measure) -> str:
    if measure.holds is None:
        return f"not judged: {measure.why}"
    return "" if measure.holds else "**broken**"


def _marked(verdict: Verdict) -> str:
    return f"**{verdict}**" if verdict is Verdict.FAILED else verdict


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def document_of(result: Result) -> dict[str, Any]:
    """Return a result as JSON can hold it."""
    return {
        "check": result.check,
        "verdict": result.verdict.value,
        "promise": result.promise,
        "why": result.why,
        "seconds": round(result.seconds, 1),
        "figures": [
            # JSON has no NaN.
            {"name": each.name, "value": each.value if each.value == each.value else None, "holds": each.holds}
            | {"least": each.bound.least, "most": each.bound.most, "unit": each.bound.unit}
            for each in result.measures
        ],
        "notes": list(result.notes),
    }


def _without_accounts(text: str) -> str:
    return _ACCOUNT.sub("<account>", text)
