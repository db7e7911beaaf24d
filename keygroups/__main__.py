"""`python -m keygroups`, which is the command `keygroups`."""

import os
import sys
from contextlib import suppress


def _leave_out_working_directory() -> None:
    """Take the working directory from `sys.path`, where `python -m` puts it first without -P.

    A file json.py in the folder of a stranger's savepoint would be imported, and run. The
    directory that has keygroups itself stays.
    """
    with suppress(OSError):  # The directory may be gone.
        here = os.getcwd()  # noqa: PTH109  # pathlib may not be imported yet
        home = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))  # noqa: PTH100, PTH120
        is_safe = getattr(sys.flags, "safe_path", False)
        if sys.path[:1] == [here] != [home] and not is_safe:
            del sys.path[0]


if __name__ == "__main__":
    _leave_out_working_directory()
    from keygroups.cli import main

    sys.exit(main())
