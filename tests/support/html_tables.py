"""HTML that is taken apart: what a reader, and one who listens, gets of it."""

from __future__ import annotations

from html.parser import HTMLParser


class Tables(HTMLParser):
    """Takes HTML apart, and refuses what is not closed in order.

    `rows` has the cells of all tables, without the words that mark some of them, `marked` the
    rows that do stand out, and `words` why, in the same order; `left` are the headings of the
    columns that stand to the left.
    """

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.typeset: list[str] = []  # texts that MathJax would look for TeX in
        self.ignored: list[bool] = [False]
        self.rows: list[list[str]] = []
        self.marked: list[list[str]] = []
        self.words: list[str] = []
        self.left: list[str] = []
        self.is_left = False
        self.captions: list[str] = []
        self.paragraphs: list[str] = []
        self.headings: list[tuple[int, str]] = []
        self.tags: set[str] = set()
        self.attributes: list[tuple[str, str]] = []
        self.feed(html)
        self.close()
        assert self.open == []
        assert self.typeset == []

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes += [(name, value or "") for name, value in attrs]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_startendtag(tag, attrs)
        if tag == "meta":  # the one without an end
            return
        self.open.append(tag)
        classes = {"tex2jax_ignore", "mathjax_ignore"}
        self.ignored.append(
            self.ignored[-1] or classes <= {*(dict(attrs).get("class") or "").split()}
        )
        found = dict(attrs)
        if tag == "tr":
            self.rows.append([])
            if "style" in found:
                self.marked.append(self.rows[-1])
        elif tag in ("td", "th"):
            self.rows[-1].append("")
            in_head = "thead" in self.open
            assert found.get("scope") == ("col" if in_head else "row" if tag == "th" else None)
            self.is_left = found.get("style") == "text-align:left"
        elif tag == "strong":
            self.words.append("")
        elif tag == "caption":
            self.captions.append("")
        elif tag == "p":
            self.paragraphs.append("")
        elif tag in ("h1", "h2", "h3"):
            self.headings.append((int(tag[1]), ""))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag
        self.ignored.pop()
        if "thead" in self.open and tag == "th" and self.is_left:
            self.left.append(self.rows[-1][-1])

    def handle_data(self, data: str) -> None:
        tag = self.open[-1] if self.open else ""
        if data.strip() and not self.ignored[-1] and "head" not in self.open:
            self.typeset.append(data)
        if tag in ("td", "th"):
            self.rows[-1][-1] += data.strip()
        elif tag == "strong":
            self.words[-1] += data
        elif tag == "caption":
            self.captions[-1] += data
        elif tag == "p":
            self.paragraphs[-1] += data
        elif tag in ("h1", "h2", "h3"):
            level, text = self.headings[-1]
            self.headings[-1] = level, text + data
        else:
            assert tag or not data.strip()


def shown(value: object) -> Tables:
    """Return the page that a notebook shows of a value, taken apart."""
    html: str = value._repr_html_()  # type: ignore[attr-defined]  # IPython asks for it
    return Tables(html)
