"""The command line: `dueline`."""

import sys

_NEEDED = {"typer", "rich"}


def main() -> int:
    """Run the command line; return its exit code. Without typer and rich, say what to install."""
    try:
        from dueline.cli.app import run
    except KeyboardInterrupt:
        # Imports take up to a second.
        sys.stderr.write("dueline: interrupted\n")
        return 130
    except ModuleNotFoundError as missing:
        if missing.name not in _NEEDED:
            raise
        sys.stderr.write("the command line needs typer and rich: pip install 'dueline[cli]'\n")
        return 1
    return run()
