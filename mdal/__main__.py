"""The command line: ``mdal`` or ``python -m mdal``."""

import sys

from ._commands import main

if __name__ == "__main__":
    sys.exit(main())
