"""`python -m rushlight`: the command line."""

import sys

from rushlight.jit.commands import main

if __name__ == "__main__":
    sys.exit(main())
