"""What the tests deploy, synthesized: for all parts of one run at once, or else by each.

To import the CDK and to start its Node takes as long as five syntheses.
"""

import os
import subprocess
import sys
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path

from local.template import ROOT, UNVALIDATED, configure, context, synthesize

# Names the folder that the parts of one run share.
SHARED = "DUELINE_TEST_ASSEMBLIES"


def assembly_of(configured: Path, *, out: Path) -> Path:
    """Return the synthesized stacks of a file: those that the parts of this run share, or else its own, in `out`."""
    place = _place(configured, Path(os.environ.get(SHARED, out)))
    return place if place.exists() else synthesize(configured, out=out)


def share(files: Iterable[str], *, folder: Path) -> None:
    """Synthesize deployments, with the periods of a local run, for all who have the folder's name in `SHARED`.

    A process that finds nothing there synthesizes alone, and reports what is wrong.
    """
    command = [sys.executable, "-m", "tests.e2e.assemblies", str(folder), *files]
    subprocess.run(command, cwd=ROOT, env=os.environ | UNVALIDATED, capture_output=True, check=False)


def _place(configured: Path, folder: Path) -> Path:
    return folder / sha256(configured.read_bytes()).hexdigest()


def _synthesize(file: Path, *, folder: Path) -> None:
    """Synthesize as app.py does."""
    import jsii._type_checking
    from aws_cdk import App

    from dueline.cdk import Dueline
    from dueline.config.deployment import load

    # The CDK checks the type of each argument, as mypy did, in a fifth of the time.
    jsii._type_checking._resolved_check = lambda **_: None
    configured = configure(file, out=folder / "settings")
    # Each has a name of its own: the CDK keeps assets by the folder that they are copied into.
    place = _place(configured, folder)
    unfinished = place.with_suffix(".unfinished")
    app = App(context=context(), analytics_reporting=False, outdir=str(unfinished))
    Dueline(app, "Dueline", deployment=load(configured))
    app.synth()
    unfinished.rename(place)


if __name__ == "__main__":
    for each in sys.argv[2:]:
        _synthesize(Path(each), folder=Path(sys.argv[1]))
