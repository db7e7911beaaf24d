"""Pictures in a page: inline SVG, which needs neither Matplotlib nor a script.

The colours are those of `keygroups._show.page`; hot bars are hatched, and named in words too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, repeat
from typing import NamedTuple

from keygroups._show.tables import html_text

_WIDTH, _HEIGHT = 720, 220
_LEFT, _RIGHT, _TOP, _BOTTOM = 76, 8, 18, 40  # room around a plot
_MOST_BARS = 128
_NAMED = 10  # hot subtasks in a description
_LABELLED = 32  # bars that have room for a word
_BAR = 0.86  # the width of a bar, as a share of its room
_TICKS = 5
_PREFIXES = "", " k", " M", " G", " T", " P", " E"


class _Bar(NamedTuple):
    """The largest of adjacent weights, `first` to `last`, and its index."""

    first: int
    last: int
    largest: int
    weight: float


def bars_svg(weights: Sequence[float], bar: str, hot: float | None = None) -> str:
    """Return the figure of a bar for each weight, and the mean.

    `bar` is "subtask" or "key group", whose weights they are; those of at least `hot` times the
    mean stand out. Where there are too many, a bar is the largest of several.
    """
    mean = sum(weights) / len(weights)
    top = _nice(max(weights))
    bars = list(_bars(weights))
    width = _plot_width() / len(bars)
    drawn = []
    for index, (first, last, largest, weight) in enumerate(bars):
        is_hot = _is_hot(weight, mean, hot)
        times = f"{weight / mean:.2f}" if mean else "1.00"
        tooltip = f"{bar} {largest}: {weight:,} bytes, {times} times the mean{', hot' * is_hot}"
        if last > first:
            tooltip += f"; the largest of {first} to {last}"
        height = weight / top * _plot_height()
        middle, y = _LEFT + (index + 0.5) * width, _TOP + _plot_height() - height
        wide = max(width * _BAR, 0.5)
        drawn.append(
            f'<rect class="{"hot" if is_hot else "bar"}" x="{middle - wide / 2:.2f}" '
            f'y="{y:.2f}" width="{wide:.2f}" height="{height:.2f}">'
            f"<title>{html_text(tooltip)}</title></rect>"
        )
        if is_hot and len(bars) <= _LABELLED:
            drawn.append(f'<text x="{middle:.2f}" y="{y - 4:.2f}" text-anchor="middle">hot</text>')
    every = bars[0].last + 1
    label = f"{bar}, of {len(weights):,}"
    label += f": the largest of every {every}" if every > 1 else ""
    places = [
        (_LEFT + (index + 0.5) * width, f"{bars[index].first:,}")
        for index in _spread(0, len(bars) - 1)
    ]
    title = f"Bytes by {bar}"
    heaviest = f"The heaviest {bar} has {max(weights):,} bytes, the mean {mean:,.6g}."
    caption = f"{heaviest} {_hot_bars(weights, bar, mean, hot)}"
    return _figure(title, caption, label, places, top, [*drawn, _mean_line(mean, top)])


def steps_svg(parallelisms: range, heaviest: Sequence[float], total: float, now: int) -> str:
    """Return the figure of the heaviest subtask's weight, and the mean, by parallelism."""
    top = _nice(max(heaviest))
    width = _plot_width() / len(parallelisms)

    def x(index: float) -> float:
        return _LEFT + index * width

    def y(weight: float) -> float:
        return _TOP + _plot_height() * (1 - weight / top)

    def steps(weights: Iterable[float]) -> str:
        lines = (
            f"L{x(index):.1f},{y(weight):.1f} L{x(index + 1):.1f},{y(weight):.1f}"
            for index, weight in enumerate(weights)
        )
        return "M" + " ".join(lines)[1:]

    means = (total / parallelism for parallelism in parallelisms)
    middle, height = x(parallelisms.index(now) + 0.5), y(heaviest[parallelisms.index(now)])
    side = "end" if middle > _WIDTH / 2 else "start"
    drawn = [
        f'<path class="heaviest" d="{steps(heaviest)}"/>',
        f'<path class="mean" d="{steps(means)}"/>',
        f'<circle class="now" cx="{middle:.1f}" cy="{height:.1f}" r="5"/>',
        f'<text x="{middle:.1f}" y="{height - 8:.1f}" text-anchor="{side}">now: {now:,}</text>',
    ]
    places = [
        (x(index + 0.5), f"{parallelisms[index]:,}") for index in _spread(0, len(parallelisms) - 1)
    ]
    caption = (
        f"At parallelism {now:,}, the one of the savepoint, the heaviest subtask has "
        f"{heaviest[parallelisms.index(now)]:,} bytes; from {parallelisms[0]:,} to "
        f"{parallelisms[-1]:,} it has {min(heaviest):,} at least. Solid: the heaviest subtask; "
        "dashed: the mean."
    )
    return _figure("Bytes of the heaviest subtask", caption, "parallelism", places, top, drawn)


def _figure(
    title: str,
    caption: str,
    label: str,
    places: Sequence[tuple[float, str]],
    top: float,
    drawn: Sequence[str],
) -> str:
    """Return a plot with its axes; `places` are the labels on the lower one."""
    bottom = _TOP + _plot_height()
    axes = [f'<path class="axis" d="M{_LEFT},{_TOP}V{bottom}H{_WIDTH - _RIGHT}"/>']
    for tick in _ticks(top):
        y = bottom - tick / top * _plot_height()
        axes.append(f'<path class="grid" d="M{_LEFT},{y:.1f}H{_WIDTH - _RIGHT}"/>')
        axes.append(
            f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{_tick(tick)}</text>'
        )
    axes += [
        f'<text x="{x:.1f}" y="{bottom + 16}" text-anchor="middle">{place}</text>'
        for x, place in places
    ]
    middle = _LEFT + _plot_width() / 2
    axes.append(
        f'<text x="{middle:.1f}" y="{_HEIGHT - 6}" text-anchor="middle">{html_text(label)}</text>'
    )
    return (
        f'<figure><svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img">'
        f"<title>{html_text(title)}</title><desc>{html_text(caption)}</desc>"
        f"{''.join([*axes, *drawn])}</svg><figcaption>{html_text(caption)}</figcaption></figure>"
    )


def _bars(weights: Sequence[float]) -> Iterator[_Bar]:
    every = -(-len(weights) // _MOST_BARS)
    for first in range(0, len(weights), every):
        some = weights[first : first + every]
        weight = max(some)
        yield _Bar(first, first + len(some) - 1, first + some.index(weight), weight)


def _is_hot(weight: float, mean: float, hot: float | None) -> bool:
    return hot is not None and weight >= hot * mean > 0


def _hot_bars(weights: Sequence[float], bar: str, mean: float, hot: float | None) -> str:
    """Return the sentences of a caption that name the hot bars and the dashed line."""
    if hot is None:
        return "The dashed line is the mean."
    named = [f"{i}" for i, weight in enumerate(weights) if _is_hot(weight, mean, hot)]
    if not named:
        return f"No {bar} is hot, which is {hot} times the mean and more."
    more = f" and {len(named) - _NAMED:,} more" if len(named) > _NAMED else ""
    plural = "s" * (len(named) > 1)
    return (
        f"Hatched, hot with {hot} times the mean and more: {bar}{plural} "
        f"{', '.join(named[:_NAMED])}{more}. The dashed line is the mean."
    )


def _mean_line(mean: float, top: float) -> str:
    y = _TOP + _plot_height() * (1 - mean / top)
    return f'<path class="mean" d="M{_LEFT},{y:.1f}H{_WIDTH - _RIGHT}"/>'


def _plot_width() -> float:
    return _WIDTH - _LEFT - _RIGHT


def _plot_height() -> float:
    return _HEIGHT - _TOP - _BOTTOM


def _nice(weight: float) -> float:
    """Return the end of an axis, the least whole number of ticks that holds a weight."""
    step = _step(weight)
    return max(-(-weight // step), 1) * step


def _step(weight: float) -> float:
    """Return the distance of ticks: 1, 2 or 5 times a power of ten."""
    ten = 1
    while 10 * ten * _TICKS < weight:
        ten *= 10
    return next(step * ten for step in (1, 2, 5, 10) if step * ten * _TICKS >= weight)


def _ticks(top: float) -> Iterator[float]:
    step = _step(top)
    return accumulate(repeat(step, int(top // step)), initial=0.0)


def _tick(weight: float) -> str:
    prefix = 0
    while weight >= 1_000 and weight % 100 == 0 and prefix < len(_PREFIXES) - 1:
        weight, prefix = weight / 1_000, prefix + 1
    return f"{weight:,.6g}{_PREFIXES[prefix]}"


def _spread(first: int, last: int) -> list[int]:
    """Return ints from the first to the last, as far apart as ticks."""
    step = int(_step(last - first))
    return [*range(first, last + 1, step)]
