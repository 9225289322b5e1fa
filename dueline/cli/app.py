"""The `dueline` command: its subcommands, their common options, and how each run ends."""

import logging
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from typing import Annotated, Any, Literal

import typer
from typer.core import TyperGroup

from dueline import __version__
from dueline.cli import connect, options
from dueline.cli.screen import DONE, EXIT_CODES, INTERRUPTED, Screen, ScreenLog, report_error
from dueline.core.clock import SystemClock

JSON = "--json"
# They may stand anywhere.
FLAGS = (JSON, "-q", "--quiet")
_ID = "emails.0.t.1799049600000.0d6a387e-1c2f-4b7a-9a51-7f6f0a3f9d10"
# Where each is, as `module:function`, and an example of it.
COMMANDS = {
    "schedule": ("job_commands:schedule", """dueline schedule emails '{"to": "ann"}' --delay 2h --key welcome-ann"""),
    "get": ("job_commands:get", f"dueline get {_ID}"),
    "cancel": ("job_commands:cancel", "dueline cancel emails --key welcome-ann"),
    "reschedule": ("job_commands:reschedule", f"dueline reschedule {_ID} --delay 3d"),
    "run-now": ("job_commands:run_now", f"dueline run-now {_ID}"),
    "jobs": ("job_commands:jobs", "dueline jobs emails --from 2027-01-04T00:00:00Z --limit 20"),
    "queues": ("queue_commands:queues", "dueline queues emails"),
    "pause": ("queue_commands:pause", "dueline pause emails"),
    "resume": ("queue_commands:resume", "dueline resume emails"),
    "rate": ("queue_commands:rate", "dueline rate emails 50/s"),
    "worker": ("worker_command:worker", "dueline worker shop.worker:worker --concurrency 20"),
    "console": ("console_command:console", "dueline console --read-only"),
    "doctor": ("operator_commands:doctor", "dueline doctor"),
    "preflight": ("operator_commands:preflight", "dueline preflight queues.yaml"),
    "dead": ("operator_commands:dead", "dueline dead emails --error KeyError --older-than 2h --retry"),
    "restore": (
        "operator_commands:restore",
        "dueline restore --jobs dueline-jobs-restored --state dueline-state-restored --apply",
    ),
}
_SCHEDULES = {"schedules": ("schedule_commands:group", "dueline schedules list emails")}


@cache
def _imported(name: str, place: str, example: str) -> Any:
    """Return a command, imported at its first use: importing all takes long."""
    module, _, function = place.partition(":")
    command = getattr(import_module(f"dueline.cli.{module}"), function)
    if not isinstance(command, typer.Typer):
        alone = typer.Typer(add_completion=False, rich_markup_mode=None)
        alone.command(name, epilog=f"For example: {example}")(command)
        command = alone
    return typer.main.get_command(command)


class Group(TyperGroup):
    """All commands of `dueline`: --json and -q may stand anywhere, and whatever happens ends with an exit code."""

    def list_commands(self, ctx: Any) -> list[str]:
        return [*COMMANDS, *_SCHEDULES]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        command = (COMMANDS | _SCHEDULES).get(cmd_name)
        return command and _imported(cmd_name, *command)

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        """Run a command, and report what it raises. SIGTERM and SIGHUP end it as Ctrl-C does."""
        arguments = flags_first(sys.argv[1:] if args is None else args) or ["--help"]
        try:
            with signals_as_ctrl_c():
                code = super().main(arguments, "dueline", complete_var, False, **extra)
            if code == INTERRUPTED:
                raise KeyboardInterrupt
        except (Exception, KeyboardInterrupt) as error:
            code = report_error(error, as_json=JSON in arguments[:1])
        code = code if isinstance(code, int) else DONE
        if not standalone_mode:
            return code
        sys.exit(code)


def flags_first(args: Sequence[str]) -> list[str]:
    """Return the arguments with --json and -q, if they stand before a `--`, in front of all others.

    >>> flags_first(["get", "X", "--json", "--", "--json"])
    ['--json', 'get', 'X', '--', '--json']
    """
    end = args.index("--") if "--" in args else len(args)
    flags = [each for each in FLAGS if each in args[:end]]
    return [*flags, *(each for each in args[:end] if each not in FLAGS), *args[end:]]


@contextmanager
def signals_as_ctrl_c() -> Iterator[None]:
    """Let SIGTERM, and SIGHUP but under nohup, end a run in order, as Ctrl-C does."""
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
    for number, handler in before.items():
        if handler is not signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _show_version(is_set: bool) -> None:
    if is_set:
        typer.echo(f"dueline {__version__}")
        raise typer.Exit


app = typer.Typer(
    cls=Group, epilog=EXIT_CODES, rich_markup_mode=None, context_settings={"help_option_names": ["-h", "--help"]}
)
Name = Annotated[str, typer.Option(envvar="DUELINE_NAME", help="The deployment's name, as in queues.yaml.")]
Url = Annotated[
    str | None,
    typer.Option(
        envvar="DUELINE_URL", help="The API's URL, of a local run, or its function's ARN.", show_default=False
    ),
]
Transport = Annotated[
    Literal["invoke", "http"] | None,
    typer.Option(
        envvar="DUELINE_TRANSPORT",
        help="By the API's function alone, or by API Gateway alone. Default: the function, where it may be invoked.",
        show_default=False,
    ),
]
Profile = Annotated[str | None, typer.Option(help="The AWS profile.", show_default=False)]
Region = Annotated[str | None, typer.Option(help="The AWS region.", show_default=False)]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, one document a line. It may stand anywhere.")]
Quiet = Annotated[bool, typer.Option("-q", "--quiet", help="Print ids or names alone. It may stand anywhere.")]
Version = Annotated[bool, typer.Option("--version", is_eager=True, callback=_show_version, help="Show the version.")]


@app.callback()
def start(
    ctx: typer.Context,
    name: Name = "dueline",
    url: Url = None,
    transport: Transport = None,
    profile: Profile = None,
    region: Region = None,
    as_json: Json = False,
    quiet: Quiet = False,
    version: Version = False,
) -> None:
    """Schedule, cancel and look up jobs, and look after queues and workers.

    The options below come before the command: dueline --name shop queues.
    """
    if as_json and quiet:
        raise typer.BadParameter("--json and --quiet are both given: give one of them")
    target = connect.Target(name=name, url=options.url(url), transport=transport, profile=profile, region=region)
    if ctx.invoked_subcommand != "worker":
        # A worker refuses --name itself, and does not use the URL.
        _check_same_deployment(ctx, target)
    screen = Screen(as_json=as_json, now=SystemClock().now(), quiet=quiet)
    logging.getLogger("dueline").handlers = [ScreenLog(screen)]
    ctx.obj = connect.CommandRun(target=target, screen=screen)


def _check_same_deployment(ctx: typer.Context, target: connect.Target) -> None:
    """Raise typer.BadParameter if --name is not the deployment of DUELINE_URL, which calls go to."""
    named, addressed = (ctx.get_parameter_source(each) for each in ("name", "url"))
    if target.url is None or named is None or named.name == "DEFAULT":
        return
    connect.check_function(target)
    # What a URL names is not known: DUELINE_NAME says it.
    is_unknown = addressed is not None and addressed.name == "ENVIRONMENT" and not target.url.startswith("arn:")
    if is_unknown and target.name != os.environ.get("DUELINE_NAME"):
        both = f"--name is {target.name!r}, but DUELINE_URL is {target.url!r}"
        raise typer.BadParameter(f"{both}: unset it, or set DUELINE_NAME to the deployment that it is of")


def run() -> int:
    """Run the command line; return its exit code."""
    code: int = typer.main.get_command(app).main(standalone_mode=False)
    return code
