"""The command line, as `python -m dueline`."""

import sys

from dueline.cli import main

if __name__ == "__main__":
    sys.exit(main())
