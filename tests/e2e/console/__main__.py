"""What is longer than a test: `python -m tests.e2e.console --help`."""

import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Annotated

import typer

from local.emulator import Emulator
from local.running import Running, running
from local.template import ROOT
from tests.e2e.console import pictures as album
from tests.e2e.console import size as measured
from tests.e2e.console.serving import administrator

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, no_args_is_help=True)
HERE = Path(__file__).parent
PICTURES = ROOT / "docs" / "pictures"


@app.callback()
def main() -> None:
    """Show the console to a browser."""


@app.command()
def pictures(into: Annotated[Path, typer.Option(help="The folder of the pictures.")] = PICTURES) -> None:
    """Fill a local AWS with life, and take the pictures that README and docs/console.md show."""
    with _up(HERE / "story.yaml") as deployed, administrator(deployed.emulator, "shop") as client:
        for file in album.take(deployed, client, into):
            typer.echo(
                f"{file.relative_to(ROOT) if file.is_relative_to(ROOT) else file}: {file.stat().st_size:,} bytes"
            )


@app.command()
def size(
    jobs: Annotated[int, typer.Option(help="How many jobs are scheduled on one queue.", min=1)] = 1_000_000,
    dead: Annotated[int, typer.Option(help="How many dead letters it has.", min=1)] = 10_000,
    queues: Annotated[int, typer.Option(help="How many queues there are.", min=1)] = 50,
    picture: Annotated[Path | None, typer.Option(help="Where to write a picture of the first view.")] = None,
) -> None:
    """Measure how soon each view shows a deployment of that size."""
    of = measured.Size(jobs=jobs, dead=dead, queues=queues)
    for view, taken in measured.measure(of, step=_step, picture=picture):
        typer.echo(f"{view:<20} {taken}")


@contextmanager
def _step(what: str) -> Iterator[None]:
    began = time.monotonic()
    typer.echo(f"{what} …")
    yield
    typer.echo(f"{what}: {time.monotonic() - began:.1f} s")


@contextmanager
def _up(queues: Path) -> Iterator[Running]:
    with tempfile.TemporaryDirectory() as scratch:
        emulator = Emulator(log=Path(scratch) / "emulator.log")
        with running(queues, emulator=emulator, step=lambda _: nullcontext()) as deployed:
            yield deployed


if __name__ == "__main__":
    app(prog_name="python -m tests.e2e.console")
