"""`python -m rushlight`: the command line."""

import sys

from rushlight.commands import main

if __name__ == "__main__":
    sys.exit(main())
