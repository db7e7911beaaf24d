"""The documentation as one static site: README, guide and API; a warning is an error.

`python tests/tools/site_pages.py FOLDER` with the `docs` extra. MkDocs shows the pages of the
guide as they are, and mkdocstrings the docstrings; each public name is on the page of one module,
and the pages of other modules that have it lead there.
"""

from __future__ import annotations

import importlib
import inspect
import json
import logging
import pkgutil
import re
import shutil
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import griffe
from mkdocs.commands.build import build
from mkdocs.config import load_config

import keygroups

ROOT = Path(__file__).resolve().parents[2]
GUIDE = {
    "Keys": ["keys_and_types", "sql_jobs", "pyflink"],
    "Load": ["layout_in_spark", "skew_and_rescaling", "max_parallelism"],
    "State": ["looking_into_a_savepoint", "editing_and_erasing", "bootstrap_and_backfill"],
    "Operations": ["on_call", "object_stores", "testing"],
    "Reference": ["glossary", "what_changed"],
}
ABOUT = [".github/ARCHITECTURE.md", ".github/CONTRIBUTING.md", ".github/SECURITY.md"]
TESTS = ["tests/README.md", "tests/vectors/README.md", "tests/benchmarks/README.md"]
COPIED = ["README.md", "LICENSE", "keygroups/savepoint/FORMAT.md", *ABOUT, *TESTS]
FOLDERS = ["keygroups/guide", "examples"]
OF_THE_API = "api/{}.md"


def public_modules() -> list[ModuleType]:
    names = [
        info.name
        for info in pkgutil.walk_packages(keygroups.__path__, "keygroups.")
        if "._" not in info.name
    ]
    return [keygroups, *map(importlib.import_module, names)]


def home_of(name: str, value: object, having: list[ModuleType]) -> str:
    """Return the module that tells of a name, one of those that have it.

    That is the one it is defined in, else the innermost, of several the one in whose folder it is
    defined.
    """
    defined = str(getattr(value, "__module__", ""))

    def rank(path: str) -> tuple[bool, int, bool, str]:
        return path == defined, path.count("."), defined.startswith(f"{path}."), path

    return max((module.__name__ for module in having), key=rank)


def homes(modules: list[ModuleType]) -> dict[str, str]:
    """Return the path on whose page each public name is, by every path that users may import."""
    having: defaultdict[tuple[str, int], list[ModuleType]] = defaultdict(list)
    for module in modules:
        for name in module.__all__:
            having[name, id(getattr(module, name))].append(module)
    return {
        f"{module.__name__}.{name}": f"{home_of(name, getattr(module, name), sharing)}.{name}"
        for (name, _), sharing in having.items()
        for module in sharing
    }


MODULES = public_modules()
HOMES = homes(MODULES)
BY_NAME: dict[str, set[str]] = defaultdict(set)
for _path, _home in HOMES.items():
    BY_NAME[_path.rpartition(".")[2]].add(_home)


def as_markdown(text: str) -> str:
    """Return a docstring with its doctests as code, and links from the public names in it."""
    blocks = re.split(r"\n\n+", text)
    return "\n\n".join(
        f"```pycon\n{block}\n```" if block.startswith(">>> ") else linked(block)
        for block in blocks
    )


def linked(block: str) -> str:
    """Return a paragraph in which public names between backquotes are links."""
    if block.startswith("    "):
        return block

    def link(match: re.Match[str]) -> str:
        path = match[1]
        name, _, member = (
            path.removeprefix("keygroups.").rpartition("keygroups.")[2].partition(".")
        )
        target = HOMES.get(path)
        if target is None and re.search("[A-Z_]", name) and len(BY_NAME.get(name, ())) == 1:
            [target] = BY_NAME[name]
            target += f".{member}" if member else ""
        return match[0] if target is None or member else f"[{match[0]}][{target}]"

    escaped = re.sub(r"(`[^`]*`)|([\[\]])", lambda match: match[1] or f"\\{match[2]}", block)
    return re.sub(r"`([A-Za-z][\w.]*)`", link, escaped)


class Docstrings(griffe.Extension):
    """Makes Markdown of the docstrings, which are plain text with doctests."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        if obj.docstring is not None and not obj.is_module:
            obj.docstring.value = as_markdown(inspect.cleandoc(obj.docstring.value))


def summary_of(value: object) -> str:
    """Return the first line of the docstring of a class or a function."""
    own = value if callable(value) else type(value)
    return (own.__doc__ or "").strip().partition("\n")[0].replace("|", "\\|")


def page_of(module: ModuleType) -> Iterator[str]:
    """Yield the lines of a module's page."""
    here = module.__name__
    yield f"# {here}\n\n{as_markdown(inspect.cleandoc(module.__doc__ or ''))}\n"
    for name in sorted(module.__all__):
        if (home := HOMES[f"{here}.{name}"]) == f"{here}.{name}":
            yield f"::: {home}\n"
    elsewhere = {name: HOMES[f"{here}.{name}"] for name in sorted(module.__all__)}
    rows = [
        f"| [`{name}`][{home}] | {linked(summary_of(getattr(module, name)))} |"
        for name, home in elsewhere.items()
        if home != f"{here}.{name}"
    ]
    if rows:
        yield "\n".join(["## Imported from here too\n", "| name | |", "|---|---|", *rows])


def write_pages(docs: Path) -> None:
    """Copy the pages that there are, those of `.github` to `about`, and make those of the API."""
    for folder in FOLDERS:
        shutil.copytree(ROOT / folder, docs / folder)
    for name in COPIED:
        copy = docs / name.replace(".github", "about")
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, copy)
    for copy in docs.rglob("*.md"):
        text = copy.read_text("utf-8").replace(".github/", "about/")
        copy.write_text(text.replace("```python\n>>> ", "```pycon\n>>> "), "utf-8")
    # The lines of examples have up to 99 characters.
    (docs / "wide.css").write_text(".md-grid { max-width: 76rem }\n", "utf-8")
    (docs / "README.md").rename(docs / "index.md")
    for module in MODULES:
        page = docs / OF_THE_API.format(module.__name__)
        page.parent.mkdir(exist_ok=True)
        page.write_text("\n".join(page_of(module)), "utf-8")


def navigation() -> list[Any]:
    guide = [
        {title: [f"keygroups/guide/{name}.md" for name in names]} for title, names in GUIDE.items()
    ]
    guide[-1]["Reference"] += ["keygroups/savepoint/FORMAT.md", "examples/README.md"]
    api = [{module.__name__: OF_THE_API.format(module.__name__)} for module in MODULES]
    about = [f"about/{Path(name).name}" for name in ABOUT]
    return [{"keygroups": "index.md"}, {"Guide": guide}, {"API": api}, {"About": about + TESTS}]


OPTIONS = {
    "docstring_style": None,
    "heading_level": 2,
    "show_root_heading": True,
    "show_root_full_path": False,
    "show_source": False,
    "show_if_no_docstring": True,
    "show_bases": False,
    "inherited_members": True,
    "members_order": "source",
    "merge_init_into_class": True,
    "separate_signature": True,
    "show_labels": False,
    "show_signature_annotations": True,
    "signature_crossrefs": True,
    "unwrap_annotated": True,
    "filters": ["!^_"],
    "extensions": [f"{Path(__file__)}:Docstrings"],
}
THEME = {
    "name": "material",
    "features": ["navigation.tabs", "navigation.top", "content.code.copy", "search.highlight"],
    "palette": [
        {
            "media": "(prefers-color-scheme: light)",
            "scheme": "default",
            "toggle": {"icon": "material/weather-night", "name": "Dark"},
        },
        {
            "media": "(prefers-color-scheme: dark)",
            "scheme": "slate",
            "toggle": {"icon": "material/weather-sunny", "name": "Light"},
        },
    ],
    "font": False,  # nothing of another host
}


def make_site(docs: Path, site: Path) -> None:
    handlers = {"python": {"paths": [str(ROOT)], "options": OPTIONS}}
    config = {
        "site_name": "keygroups",
        "docs_dir": str(docs),
        "site_dir": str(site),
        "use_directory_urls": False,
        "nav": navigation(),
        "theme": THEME,
        "extra_css": ["wide.css"],
        "markdown_extensions": ["toc", "tables", "pymdownx.highlight", "pymdownx.superfences"],
        "plugins": ["search", "autorefs", {"mkdocstrings": {"handlers": handlers}}],
    }
    file = docs.parent / "mkdocs.yml"
    file.write_text(json.dumps(config), "utf-8")  # JSON is YAML too.
    build(load_config(str(file), strict=True))
    for module in MODULES:
        page = (site / "api" / f"{module.__name__}.html").read_text("utf-8")
        wanted = {f"{module.__name__}.{name}" for name in module.__all__} & set(HOMES.values())
        shown = set(re.findall(r'<h2 id="([\w.]+)"', page))
        assert wanted <= shown, (module.__name__, wanted - shown)


if __name__ == "__main__":
    logging.basicConfig(level=logging.WARNING)
    with tempfile.TemporaryDirectory() as folder:
        write_pages(Path(folder) / "docs")
        make_site(Path(folder) / "docs", Path(sys.argv[1]).resolve())
