"""The HTML pages of the public API, which pdoc makes of the docstrings; a warning is an error.

`python tests/tools/api_pages.py FOLDER` with the `docs` extra.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys
import warnings
from pathlib import Path

import pdoc

import keygroups


def public_modules() -> list[str]:
    """Return the names of the modules that pdoc is to be told.

    It finds by itself a module that a package has among its public names, as a function of the
    same name is there, and does not take it twice.
    """
    names = [
        info.name
        for info in pkgutil.walk_packages(keygroups.__path__, "keygroups.")
        if "._" not in info.name
    ]
    found = set()
    for name in names:
        module = importlib.import_module(name)
        found |= {f"{name}.{public}" for public in module.__all__} & {*names}
    return ["keygroups", *(name for name in names if name not in found)]


if __name__ == "__main__":
    warnings.simplefilter("error")
    # It looks for the types of a NamedTuple in the module of NamedTuple, and for those of an alias
    # where that is used. What it does not find is on the page as the code has it.
    warnings.filterwarnings("ignore", "Error parsing type annotation")
    pdoc.pdoc(*public_modules(), output_directory=Path(sys.argv[1]))
