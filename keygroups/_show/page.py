"""A page of HTML that loads nothing and runs nothing, for a browser and for paper."""

from __future__ import annotations

from collections.abc import Iterable

from keygroups._show.tables import NO_TEX, html_text

# The browser loads nothing, even if a name in the page should smuggle in a link.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
_STYLE = """
:root { color-scheme: light dark; --ink: #1c1c1c; --page: #fff; --faint: #6a6a6a; --rule: #d0d0d0;
  --bar: #5b8db8; --hot: #b3401f; --stripe: #fff; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6e6e6; --page: #16181b; --faint: #a0a4a8; --rule: #41464c;
    --bar: #6fa8d6; --hot: #ff8a5c; --stripe: #16181b; }
}
@media print {
  :root { color-scheme: light; --ink: #000; --page: #fff; --faint: #444; --rule: #bbb;
    --bar: #7a9dbb; --hot: #b3401f; --stripe: #fff; }
  figure, tr { break-inside: avoid; }
  h2, h3 { break-after: avoid; }
  * { print-color-adjust: exact; }
}
body { margin: 0 auto; max-width: 60rem; padding: 1rem; background: var(--page);
  color: var(--ink); font: 15px/1.5 system-ui, sans-serif; overflow-wrap: anywhere; }
h2 { margin-top: 3rem; border-bottom: 1px solid var(--rule); }
.wide { overflow-x: auto; }
table { border-collapse: collapse; margin: 1rem 0; font-variant-numeric: tabular-nums; }
caption { text-align: left; color: var(--faint); }
th, td { padding: .15rem .7rem; border-bottom: 1px solid var(--rule); vertical-align: top;
  overflow-wrap: break-word; }
tbody th { font-weight: normal; }
strong { color: var(--hot); }
figure { margin: 1rem 0; }
figcaption { color: var(--faint); }
svg { display: block; width: 100%; max-width: 720px; height: auto; }
svg text { fill: var(--ink); font-size: 11px; }
svg path { fill: none; }
.axis { stroke: var(--faint); }
.grid { stroke: var(--rule); stroke-width: .5; }
.bar { fill: var(--bar); }
.hot { fill: url(#hatched); stroke: var(--hot); }
.mean { stroke: var(--ink); stroke-dasharray: 5 3; }
.heaviest { stroke: var(--hot); stroke-width: 2; }
.now { fill: var(--hot); }
#hatched rect { fill: var(--hot); }
#hatched path { stroke: var(--stripe); stroke-width: 2; }
.patterns { position: absolute; width: 0; height: 0; }
"""
_PATTERNS = (
    '<svg class="patterns" aria-hidden="true"><pattern id="hatched" width="6" height="6" '
    'patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect width="6" height="6"/>'
    '<path d="M0,0V6"/></pattern></svg>'
)


def page(title: str, contents: Iterable[str]) -> str:
    """Return the page of a title and the contents below it, which are HTML."""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{html_text(title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
        f"{_PATTERNS}\n<main {NO_TEX}>\n<h1>{html_text(title)}</h1>\n"
        + "\n".join(contents)
        + "\n</main>\n</body>\n</html>\n"
    )


def heading(level: int, text: str) -> str:
    """Return a heading."""
    return f"<h{level}>{html_text(text)}</h{level}>"


def wide(html: str) -> str:
    """Return HTML in a box that scrolls where it is wider than the page."""
    return f'<div class="wide">{html}</div>'
