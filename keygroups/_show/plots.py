"""Pictures of loads and rescales, by Matplotlib.

They read in grey as in colour: what is hot or moves is darker, hatched and named in the legend.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from keygroups.errors import InvalidTypeError, KeyGroupsError
from keygroups.key_group_range import subtask_starts

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_PLAIN, _MARKED, _LINE = "#8fb4d1", "#b3401f", "#222222"
_NAMED = 32  # subtasks that have room for their numbers


def plot_bars(
    weights: Sequence[float],
    bar: str,
    title: str,
    hot: float | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw a bar for each weight, and the mean. Returns the Axes.

    `bar` names what a bar is of, "subtask" or "key group"; those of at least `hot` times the
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
                edgecolor="white" if is_marked else _PLAIN,
                linewidth=0.5,
                label=f"hot: {hot} times the mean and more" if is_marked else None,
            )
    axes.axhline(mean, color=_LINE, linestyle="--", linewidth=1, label=f"mean {mean:,.6g}")
    axes.set_xlabel(f"{bar}, of {len(weights):,}")
    axes.set_ylabel("weight")
    axes.set_title(title)
    axes.margins(x=0.01)
    axes.legend()
    return axes


def plot_heaviest(
    parallelisms: Sequence[tuple[int, float, float]], ax: Axes | None = None
) -> Axes:
    """Draw the heaviest subtask's weight, and the mean, against the parallelism.

    Each is a parallelism, that weight and the imbalance, in the order of the parallelisms, and
    has the lightest heaviest subtask up to the next. `ax` and the result are as in `plot_bars`.
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
    axes.plot(places, means, color=_LINE, linestyle="--", linewidth=1, label="mean subtask")
    axes.set_xlabel("parallelism")
    axes.set_ylabel("weight")
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
    """Draw old subtasks above key groups above new subtasks; what moves stands out.

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
            edgecolor="white",
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


def _subtask_row(axes: Axes, groups: int, parallelism: int, bottom: int) -> None:
    """Mark where subtasks start, and number them if there is room."""
    for subtask, (start, end) in enumerate(pairwise(subtask_starts(groups, parallelism))):
        axes.vlines(start, bottom, bottom + 1, color=_LINE, linewidth=1)
        if parallelism > _NAMED:
            continue
        axes.text(
            (start + end) / 2,
            bottom + 0.5,
            str(subtask),
            ha="center",
            va="center",
            bbox={"boxstyle": "round", "facecolor": "white", "edgecolor": "none", "pad": 0.15},
        )
