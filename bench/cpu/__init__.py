"""CPU per job: what our own code computes in each step, with AWS's side taken out."""

import json
import subprocess
import sys

from bench.cpu.report import markdown, pictures
from bench.part import Bench, Measured, Part
from local.template import ROOT

_SECONDS, _QUICK_SECONDS = 115, 5


def _measure(bench: Bench) -> Measured:
    """Measure in a process of its own, in which nothing else computes, and whose environment is the functions'."""
    from bench.cpu.figures import measured
    from bench.cpu.process import FIGURES

    seconds = _QUICK_SECONDS if bench.quick else _SECONDS
    command = [sys.executable, "-m", "bench.cpu.process", str(bench.scratch), str(seconds)]
    with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True) as process:
        said = [_passed_on(line, bench) for line in process.stderr or ()]
    if process.returncode:
        raise RuntimeError(f"the process that is measured failed: {''.join(said)[-2000:]}")
    return measured(json.loads((bench.scratch / FIGURES).read_text()))


def _passed_on(line: str, bench: Bench) -> str:
    """Tell the progress that a line tells of; return a line that tells of something else."""
    told = line.rstrip().split("\t")
    if len(told) != 3:
        return line
    bench.progress(told[0], int(told[1]), int(told[2]))
    return ""


PART = Part(name="cpu", title="CPU per job", measure=_measure, markdown=markdown, pictures=pictures)
