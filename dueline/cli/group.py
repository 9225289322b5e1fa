"""The command as a whole: --json wherever it stands, and whatever happens, a line and an exit code."""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperGroup

from dueline.cli.faults import DONE, INTERRUPTED, Fault

JSON = "--json"


class Commands(Mapping[str, Any]):
    """Commands by their names, each imported when it is asked for: all that none but the others need takes longer.

    `places` tells where each is, as `module:function`, and an example of it.
    """

    def __init__(self, places: Mapping[str, tuple[str, str]]) -> None:
        self._places = places

    def __getitem__(self, name: str) -> Any:
        return _imported(name, *self._places[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)


@cache
def _imported(name: str, place: str, example: str) -> Any:
    module, _, function = place.partition(":")
    command = getattr(import_module(f"dueline.cli.{module}"), function)
    if not isinstance(command, typer.Typer):
        alone = typer.Typer(add_completion=False, rich_markup_mode=None)
        alone.command(name, epilog=f"For example: {example}")(command)
        command = alone
    return typer.main.get_command(command)


class Group(TyperGroup):
    """Commands that end with a line and an exit code."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        given = json_first(sys.argv[1:] if args is None else args) or ["--help"]
        run = super().main
        code = ended(lambda: run(given, "dueline", complete_var, False, **extra), as_json=JSON in given[:1])
        if not standalone_mode:
            return code
        sys.exit(code)


def json_first(args: Sequence[str]) -> list[str]:
    """Return what was typed with --json in front of it all, if it is there before a `--`.

    >>> json_first(["get", "X", "--json", "--", "--json"])
    ['--json', 'get', 'X', '--', '--json']
    """
    end = args.index("--") if "--" in args else len(args)
    options = [each for each in args[:end] if each != JSON]
    return [*([JSON] if JSON in args[:end] else []), *options, *args[end:]]


def ended(run: Callable[[], object], *, as_json: bool) -> int:
    """Run a command and return its exit code; report what it raises."""
    try:
        code = run()
        if code != INTERRUPTED:
            return code if isinstance(code, int) else DONE
        raise KeyboardInterrupt
    except (Exception, KeyboardInterrupt) as error:
        fault = Fault.of(error)
        fault.report(as_json=as_json)
        return fault.exit_code
