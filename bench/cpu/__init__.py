"""CPU per job: what our own code computes in each step, with AWS's side taken out."""

from bench.cpu.report import markdown, pictures
from bench.part import Bench, Measured, Part

_SECONDS, _QUICK_SECONDS = 115, 5


def _measure(bench: Bench) -> Measured:
    """Measure in a process whose environment is the functions'."""
    from bench.apart import measured_apart
    from bench.cpu.figures import measured

    seconds = _QUICK_SECONDS if bench.quick else _SECONDS
    arguments = str(bench.scratch), str(seconds)
    log = bench.scratch / "errors"
    return measured(measured_apart("bench.cpu.process", *arguments, log=log, progress=bench.progress))


PART = Part(name="cpu", title="CPU per job", measure=_measure, markdown=markdown, pictures=pictures)
