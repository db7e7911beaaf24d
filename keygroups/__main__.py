"""`python -m keygroups`, which is the command `keygroups`."""

import sys

from keygroups.cli import main

if __name__ == "__main__":
    sys.exit(main())
