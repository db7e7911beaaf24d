"""Text that others wrote, such as a uid in a savepoint, as a person reads it."""

from __future__ import annotations


def printable(text: str) -> str:
    r"""Return a text with what cannot be printed escaped, as Python's `repr` escapes it.

    That are control characters, which command a terminal, line breaks and tabs among them; marks
    of direction and others without a width, which hide or reorder what stands beside them; spaces
    but the plain one; lone surrogates; and what Unicode does not assign. A backslash stays as it
    is, so a text that was escaped stays as it is too.

    >>> printable("caf\u00e9 \u65e5\u672c")
    'café 日本'
    >>> print(printable("a\x1b[2J\rb\u202ec"))
    a\x1b[2J\rb\u202ec
    """
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else repr(one)[1:-1] for one in text)


def short(text: str, most: int) -> str:
    """Return a text as `printable` does, of a longer one its start and its end.

    In a table each line is as long as the longest name.
    """
    text = printable(text)
    end = (most - 3) // 2 - 1
    return text if len(text) <= most else f"{text[: most - 3 - end]}...{text[-end:]}"
