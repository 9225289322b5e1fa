"""The command as a whole: --json wherever it stands, and whatever happens, a line and an exit code."""

import sys
from collections.abc import Callable, Sequence
from typing import Any

from typer.core import TyperGroup

from dueline.cli.faults import DONE, INTERRUPTED, Fault

JSON = "--json"


class Group(TyperGroup):
    """All commands of `dueline`."""

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
