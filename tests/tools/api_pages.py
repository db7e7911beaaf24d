"""The HTML pages of the public API, which pdoc makes of the docstrings; a warning is an error.

`python tests/tools/api_pages.py FOLDER` with the `docs` extra. Each name is on the page of one
module; those of other modules that have it lead there. What a class has of a private one of ours
is told as its own; what it has of Python's, as a tuple with names does, is not.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
import sys
import warnings
from collections import defaultdict
from pathlib import Path
from types import ModuleType
from typing import Any, get_type_hints

import jinja2
import pdoc
from markupsafe import Markup
from pdoc.render_helpers import link, linkify, relative_link

import keygroups

TEMPLATES = {
    # Examples have lines of 90 characters, which are wider than pdoc's page.
    "custom.css": """
@media (min-width: 770px) { main { width: calc(66rem + var(--sidebar-width)); } }
""",
    # pdoc's own list has the modules in `__all__`.
    "module.html.jinja2": """
{% extends "default/module.html.jinja2" %}
{% block nav_submodules %}
  {% for name in all_modules if name.rpartition(".")[0] == module.modulename %}
    {{ "<h2>Submodules</h2><ul>" | safe if loop.first }}
    <li>{{ (name, "") | link(text=name.rpartition(".")[2]) }}</li>
    {{ "</ul>" | safe if loop.last }}
  {% endfor %}
{% endblock %}
""",
}
DOT = '(?:[.]|</span><span class="o">[.]</span><span class="n">)'  # in text, and in a signature


def public_modules() -> list[ModuleType]:
    names = [
        info.name
        for info in pkgutil.walk_packages(keygroups.__path__, "keygroups.")
        if "._" not in info.name
    ]
    return [keygroups, *map(importlib.import_module, names)]


def home_of(name: str, value: object, having: list[ModuleType]) -> str:
    """Return which of the modules that have a name tells of it.

    That is the one it is defined in, else the innermost, of several the one in whose folder it is
    defined.
    """
    defined = str(getattr(value, "__module__", ""))

    def rank(path: str) -> tuple[bool, int, bool, str]:
        return path == defined, path.count("."), defined.startswith(f"{path}."), path

    return max((module.__name__ for module in having), key=rank)


class Homes:
    """Where each public name is told of; it is taken out of the `__all__` of other modules."""

    def __init__(self, modules: list[ModuleType]) -> None:
        having: defaultdict[tuple[str, int], list[ModuleType]] = defaultdict(list)
        for module in modules:
            for name in module.__all__:
                having[name, id(getattr(module, name))].append(module)
        self.of_private: dict[str, tuple[str, str]] = {}  # by what annotations have
        self.of_path: dict[str, str] = {}  # by any path that users may import
        self.of_name: defaultdict[str, set[str]] = defaultdict(set)
        for module in modules:
            for name in dir(module):
                value = getattr(module, name)
                if (name, id(value)) not in having:  # a module
                    continue
                home = home_of(name, value, having[name, id(value)])
                self.of_path[f"{module.__name__}.{name}"] = home
                self.of_name[name].add(home)
                if isinstance(value, type):
                    self.of_private[f"{value.__module__}.{value.__qualname__}"] = home, name
        for module in modules:
            names, here = module.__all__, module.__name__
            other = [name for name in names if self.of_path[f"{here}.{name}"] != here]
            if other:
                paths = ", ".join(f"`{here}.{name}`" for name in other)
                module.__doc__ = f"{module.__doc__}\n\nAlso to be had from here: {paths}."
            vars(module)["__all__"] = [name for name in names if name not in other]

    def public(self, text: str) -> str:
        """Replace the private paths of public classes."""

        def path(match: re.Match[str]) -> str:
            private = re.sub(DOT, ".", match[0])
            return ".".join(self.of_private[private]) if private in self.of_private else match[0]

        return re.sub(rf"\bkeygroups(?:{DOT}\w+)+", path, text)

    @jinja2.pass_context
    def linkify(
        self, context: jinja2.runtime.Context, text: str, namespace: str = "", shorten: bool = True
    ) -> str:
        """As pdoc's, and for names of other pages. Of an annotation the link is the name alone."""
        html = str(linkify(context, self.public(str(text)), namespace, shorten))
        if shorten:
            return Markup(re.sub(r">keygroups[.](?:\w+[.])*(\w+)</a>", r">\1</a>", html))

        def linked(match: re.Match[str]) -> str:
            path, name = match[1], match[1]
            homes = set[str]()
            if path in self.of_path:
                homes, name = {self.of_path[path]}, path.rpartition(".")[2]
            elif re.search("[A-Z_]", name):  # no word, as `types` is
                homes = self.of_name.get(name.partition(".")[0], homes)
            if len(homes) != 1:
                return match[0]
            [home] = homes
            if context["all_modules"][home].get(name) is None:
                return match[0]
            page = relative_link(context["module"].modulename, home)
            return f'<code><a href="{page}#{name}">{path}</a></code>'

        return Markup(re.sub(r"<code>([A-Za-z][\w.]*)</code>", linked, html))

    @jinja2.pass_context
    def link(
        self, context: jinja2.runtime.Context, spec: tuple[str, str], text: str | None = None
    ) -> str:
        home, name = self.of_private.get(".".join(spec), spec)
        linked: str = link(context, (home, name), name if home != spec[0] else text)
        return linked


def tidy_named_tuples(modules: list[ModuleType]) -> None:
    """Resolve the types of tuples with names, and drop the docstrings that Python makes."""
    for cls in {getattr(module, name) for module in modules for name in module.__all__}:
        if isinstance(cls, type) and hasattr(cls, "_fields"):
            hints = get_type_hints(cls)
            cls.__new__.__annotations__ = hints
            for made in (cls.__new__, *map(vars(cls).get, hints)):
                made.__doc__ = ""


def has_private_type(member: pdoc.doc.Doc[Any], homes: Homes) -> bool:
    return "._" in homes.public(str(getattr(member, "signature_without_self", "")))


def show_as_users_see(homes: Homes) -> None:
    """Hide from pdoc which private classes there are."""
    kinds = (pdoc.doc.Class.own_members, pdoc.doc.Class.inherited_members, pdoc.doc.Class.bases)
    own_members, inherited_members, bases = (kind.func for kind in kinds)

    def is_public(base: tuple[str, str]) -> bool:
        return ".".join(base) in homes.of_private or not base[0].startswith("keygroups.")

    def own(cls: pdoc.doc.Class) -> list[pdoc.doc.Doc[Any]]:
        """A constructor that takes what is private is not for users."""
        members = list(own_members(cls))
        for base, inherited in inherited_members(cls).items():
            if not is_public(base):
                members += inherited
        return [
            member
            for member in members
            if member.name != "__init__" or not has_private_type(member, homes)
        ]

    def inherited(cls: pdoc.doc.Class) -> dict[tuple[str, str], list[pdoc.doc.Doc[Any]]]:
        return {
            base: [member for member in members if member.name != "__init__"]
            for base, members in inherited_members(cls).items()
            if is_public(base)
        }

    def public_bases(cls: pdoc.doc.Class) -> list[tuple[str, str, str]]:
        return [base for base in bases(cls) if is_public(base[:2])]

    for kind, function in zip(kinds, (own, inherited, public_bases)):
        kind.func = function
    pdoc.render.env.filters |= {"linkify": homes.linkify, "link": homes.link}
    templates = [jinja2.DictLoader(TEMPLATES), pdoc.render.env.loader]
    pdoc.render.env.loader = jinja2.ChoiceLoader(templates)


if __name__ == "__main__":
    warnings.simplefilter("error")
    # It looks for the types of an alias where that is used. What it does not find is on the page
    # as the code has it.
    warnings.filterwarnings("ignore", r"Error parsing type annotation (KF\.)?Key ")
    modules = public_modules()
    tidy_named_tuples(modules)
    show_as_users_see(Homes(modules))
    folder = Path(sys.argv[1])
    pdoc.pdoc(*(module.__name__ for module in modules), output_directory=folder)
    for module in modules:
        page = folder.joinpath(*module.__name__.split(".")).with_suffix(".html").read_text("utf-8")
        shown = re.findall(r'<section id="(\w+)">', page)
        assert sorted(shown) == sorted(module.__all__), module.__name__
