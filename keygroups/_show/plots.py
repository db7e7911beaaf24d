"""Pictures of loads and rescales, by Matplotlib.

They read in grey as in colour: hot and moving parts are darker, hatched and named in the legend.
Lines and gaps have the colours of the current style, so they read on a dark one too. A title
states the finding, for people who have the text of the Axes and not the picture.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from keygroups.errors import InvalidTypeError, KeyGroupsError
from keygroups.key_group_range import subtask_starts

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_PLAIN, _MARKED = "#8fb4d1", "#c8502a"
_NAMED = 32  # subtasks that have room for their numbers


def plot_bars(
    weights: Sequence[float],
    bar: str,
    title: str,
    hot: float | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw a bar for each weight, and the mean. Returns the Axes.

    `bar` is "subtask" or "key group", whose weights they are; those of at least `hot` times the
    mean stand out. `ax` is Matplotlib's Axes, a new one if None. Raises InvalidTypeError for
    anything else, KeyGroupsError without Matplotlib.
    """
    axes = _axes(ax)
    mean = sum(weights) / len(weights)
    marked = [hot is not None and weight >= hot * mean > 0 for weight in weights]
    for is_marked in (False, True):
        shown = [index for index, mark in enumerate(marked) if mark == is_marked]
        if shown:
            axes.bar(
                shown,
                [weights[index] for index in shown],
                color=_MARKED if is_marked else _PLAIN,
                hatch="//" if is_marked else None,
                edgecolor=axes.get_facecolor() if is_marked else _PLAIN,
                linewidth=0.5,
                label=f"hot: {hot} times the mean and more" if is_marked else None,
            )
    label = f"mean {mean:,.6g}"
    axes.axhline(mean, color=_ink(axes), linestyle="--", linewidth=1, label=label)
    axes.set_xlabel(f"{bar}, of {len(weights):,}")
    axes.set_ylabel("weight")
    axes.set_title(title)
    axes.margins(x=0.01, y=0.3)  # room for the legend above all bars
    _count_in_ints(axes, weights)
    axes.legend()
    return axes


def plot_heaviest(
    parallelisms: Sequence[tuple[int, float, float]], title: str, ax: Axes | None = None
) -> Axes:
    """Draw the heaviest subtask's weight, and the mean, against the parallelism.

    Each is a parallelism, that weight and the imbalance, in the order of the parallelisms; none
    before the next has a much lighter heaviest subtask. `ax` and the result are as in `plot_bars`.
    """
    axes = _axes(ax)
    places = [parallelism for parallelism, _, _ in parallelisms]
    heaviest = [weight for _, weight, _ in parallelisms]
    means = [weight / imbalance for _, weight, imbalance in parallelisms]
    axes.plot(
        places,
        heaviest,
        color=_MARKED,
        marker="o",
        markersize=4,
        drawstyle="steps-post",
        label="heaviest subtask",
    )
    axes.plot(places, means, color=_ink(axes), linestyle="--", linewidth=1, label="mean subtask")
    axes.set_xlabel("parallelism")
    axes.set_ylabel("weight")
    axes.set_title(title)
    _count_in_ints(axes, heaviest)
    axes.set_ylim(bottom=0)
    axes.legend()
    return axes


def plot_bands(
    bands: Iterable[tuple[int, int, bool]],
    max_parallelism: int,
    old_parallelism: int,
    new_parallelism: int,
    title: str,
    weights: Sequence[float] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw old subtasks above key groups above new subtasks; moving key groups stand out.

    `bands` are a first key group, the one past the last, and whether they move. With `weights`
    the key groups are shaded by theirs. `ax` and the result are as in `plot_bars`.
    """
    axes = _axes(ax)
    groups = max_parallelism
    for start, end, moves in bands:
        axes.fill_between(
            [start, end],
            0,
            3,
            facecolor=_MARKED if moves else _PLAIN,
            hatch="//" if moves else None,
            edgecolor=axes.get_facecolor(),
            linewidth=0.5,
            label="moves" if moves else "stays",
        )
    for bottom, parallelism in ((2, old_parallelism), (0, new_parallelism)):
        _subtask_row(axes, groups, parallelism, bottom)
    if weights is not None:
        axes.imshow(
            [weights], cmap="Greys", aspect="auto", extent=(0, groups, 1, 2), vmin=0, zorder=2
        )
    axes.set_xlim(0, groups)
    axes.set_ylim(0, 3)
    shades = "key groups" if weights is None else "key groups,\ndark: heavy"
    axes.set_yticks([0.5, 1.5, 2.5], ["new subtasks", shades, "old subtasks"])
    axes.set_xlabel(f"key group, of {groups:,}")
    axes.set_title(title)
    _count_in_ints(axes)
    handles, labels = axes.get_legend_handles_labels()
    legend = dict(zip(labels, handles))
    axes.legend(legend.values(), legend.keys(), loc="upper left", bbox_to_anchor=(1, 1))
    return axes


def _axes(ax: object) -> Axes:
    try:
        from matplotlib.axes import Axes
        from matplotlib.pyplot import subplots
    except ImportError:
        raise KeyGroupsError("plots need Matplotlib: pip install 'keygroups[plot]'") from None
    if ax is None:
        return subplots(figsize=(8, 3.5), layout="constrained")[1]
    if not isinstance(ax, Axes):
        raise InvalidTypeError(f"ax must be Matplotlib's Axes, got {type(ax).__name__}")
    return ax


def _ink(axes: Axes) -> object:
    """Return the colour of text in the current style."""
    return axes.title.get_color()


def _count_in_ints(axes: Axes, weights: Sequence[float] = ()) -> None:
    """Restrict the x axis to ints, and the y axis too if all weights are ints."""
    from matplotlib.ticker import MaxNLocator, StrMethodFormatter

    has_ints = weights and all(isinstance(weight, int) for weight in weights)
    for scale in (axes.xaxis, axes.yaxis) if has_ints else (axes.xaxis,):
        scale.set_major_locator(MaxNLocator(integer=True))
        scale.set_major_formatter(StrMethodFormatter("{x:,.0f}"))


def _subtask_row(axes: Axes, groups: int, parallelism: int, bottom: int) -> None:
    """Mark the starts of subtasks, and number them if there is room."""
    for subtask, (start, end) in enumerate(pairwise(subtask_starts(groups, parallelism))):
        axes.vlines(start, bottom, bottom + 1, color=_ink(axes), linewidth=1)
        if parallelism > _NAMED:
            continue
        axes.text(
            (start + end) / 2,
            bottom + 0.5,
            str(subtask),
            ha="center",
            va="center",
            bbox={
                "boxstyle": "round",
                "facecolor": axes.get_facecolor(),
                "edgecolor": "none",
                "pad": 0.15,
            },
        )
