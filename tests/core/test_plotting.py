"""Plots, whose data is read back from the Axes."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import pytest

from keygroups import (
    InvalidTypeError,
    InvalidValueError,
    KeyGroupLoad,
    KeyGroupsError,
    ParallelismError,
    RescalePlan,
)
from keygroups.reports import RescaleReport

LOAD = KeyGroupLoad(8, [5, 1, 1, 1, 0, 1, 2, 1])
PLAN = RescalePlan(8, 2, 3)


@pytest.fixture
def pyplot() -> Iterator[Any]:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from matplotlib import pyplot

    yield pyplot
    pyplot.close("all")


def bars(axes: Any) -> list[float]:
    """Return the height of each bar, by its place."""
    heights = {round(bar.get_x() + bar.get_width() / 2): bar.get_height() for bar in axes.patches}
    return [heights[place] for place in sorted(heights)]


def legend(axes: Any) -> list[str]:
    return [text.get_text() for text in axes.get_legend().get_texts()]


@pytest.mark.extras
def test_subtasks(pyplot: Any) -> None:
    axes: Any = LOAD.plot(4)
    assert bars(axes) == [6, 2, 1, 3]
    assert [line.get_ydata()[0] for line in axes.lines] == [3]
    assert legend(axes) == ["mean 3", "hot: 1.5 times the mean and more"]
    assert axes.get_xlabel() == "subtask, of 4"
    assert axes.get_ylabel() == "weight"
    assert axes.get_title() == "the heaviest subtask has 6, imbalance 2.00"
    assert -1 < axes.get_xlim()[0] < axes.get_xlim()[1] < 4
    hot = [bar for bar in axes.patches if bar.get_hatch()]
    assert [bar.get_height() for bar in hot] == [6]


@pytest.mark.extras
def test_no_subtask_is_hot(pyplot: Any) -> None:
    axes = KeyGroupLoad(4, [1] * 4).plot(2)
    assert bars(axes) == [2, 2]
    assert legend(axes) == ["mean 2"]
    axes = KeyGroupLoad(2, [0, 0]).plot(2)
    assert bars(axes) == [0, 0]
    assert legend(axes) == ["mean 0"]


@pytest.mark.extras
def test_key_groups(pyplot: Any) -> None:
    axes = LOAD.plot_key_groups()
    assert bars(axes) == list(LOAD.weights)
    assert axes.get_title() == "12 in all"


@pytest.mark.extras
def test_recommendations(pyplot: Any) -> None:
    """Of 12 the heaviest subtask has 12, 8, 7 and 6 at 1 to 4, still 6 up to 7, and 5 at 8."""
    _, given = pyplot.subplots()
    axes = LOAD.recommend(1, 8).plot(given)
    assert axes is given
    heaviest, mean = axes.lines
    assert (list(heaviest.get_xdata()), list(heaviest.get_ydata())) == (
        [1, 2, 3, 4, 8],
        [12, 8, 7, 6, 5],
    )
    assert heaviest.get_drawstyle() == "steps-post"
    assert list(mean.get_ydata()) == [12, 6, 4, 3, 1.5]
    assert legend(axes) == ["heaviest subtask", "mean subtask"]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("parallelism", "weight")
    assert axes.get_ylim()[0] == 0


@pytest.mark.extras
def test_recommendations_of_no_weight(pyplot: Any) -> None:
    axes: Any = KeyGroupLoad(8, {}).recommend(2, 8).plot()
    assert [list(line.get_ydata()) for line in axes.lines] == [[0], [0]]


@pytest.mark.extras
def test_plan(pyplot: Any) -> None:
    _, given = pyplot.subplots()
    axes = PLAN.plot(ax=given)
    assert axes is given
    bands = [band for band in axes.collections if band.get_label() in ("moves", "stays")]
    spans = [
        (band.get_label(), *sorted({float(x) for x, _ in band.get_paths()[0].vertices}))
        for band in bands
    ]
    assert spans == [("stays", 0, 3), ("moves", 3, 4), ("stays", 4, 6), ("moves", 6, 8)]
    assert [band.get_hatch() for band in bands] == [None, "//", None, "//"]
    # The hatch has the colour of the edge.
    assert all(tuple(*band.get_edgecolor()) == (1, 1, 1, 1) for band in bands)
    assert legend(axes) == ["stays", "moves"]
    assert [(*text.get_position(), text.get_text()) for text in axes.texts] == [
        *((2, 2.5, "0"), (6, 2.5, "1")),
        *((1.5, 0.5, "0"), (4.5, 0.5, "1"), (7, 0.5, "2")),
    ]
    assert list(axes.images) == []


@pytest.mark.extras
def test_plan_with_a_load(pyplot: Any) -> None:
    axes: Any = RescaleReport(PLAN, LOAD).plot()
    [image] = axes.images
    assert image.get_array().tolist() == [list(LOAD.weights)]


@pytest.mark.extras
def test_many_subtasks_have_no_numbers(pyplot: Any) -> None:
    assert list(RescalePlan(128, 33, 40).plot().texts) == []


@pytest.mark.extras
def test_refusals(pyplot: Any) -> None:
    no_axes: Any = "axes"
    with pytest.raises(InvalidTypeError, match="ax must be Matplotlib's Axes, got str"):
        LOAD.plot(2, ax=no_axes)
    with pytest.raises(ParallelismError, match="parallelism must be from 1 to 8"):
        LOAD.plot(9)
    with pytest.raises(InvalidValueError, match="load must have max_parallelism 8"):
        PLAN.plot(KeyGroupLoad(4, [1] * 4))
    with pytest.raises(InvalidTypeError, match="plan must be a RescalePlan"):
        RescaleReport(LOAD, LOAD)  # type: ignore[arg-type]


def test_without_matplotlib(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.axes", None)
    message = r"plots need Matplotlib: pip install 'keygroups\[plot\]'"
    with pytest.raises(KeyGroupsError, match=message):
        LOAD.plot(2)
