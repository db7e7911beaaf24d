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
from keygroups.load import Recommendations
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
    assert axes.get_title() == "hot subtask 0 of 4 has the most, 6: 2.00 times the mean"
    assert -1 < axes.get_xlim()[0] < axes.get_xlim()[1] < 4
    hot = [bar for bar in axes.patches if bar.get_hatch()]
    assert [bar.get_height() for bar in hot] == [6]


@pytest.mark.extras
def test_no_subtask_is_hot(pyplot: Any) -> None:
    axes = KeyGroupLoad(4, [1] * 4).plot(2)
    assert bars(axes) == [2, 2]
    assert legend(axes) == ["mean 2"]
    assert axes.get_title() == "subtask 0 of 2 has the most, 2: 1.00 times the mean"
    axes = KeyGroupLoad(2, [0, 0]).plot(2)
    assert bars(axes) == [0, 0]
    assert legend(axes) == ["mean 0"]


@pytest.mark.extras
def test_one_and_a_half_times_the_mean_is_hot(pyplot: Any) -> None:
    axes: Any = KeyGroupLoad(4, [3, 1, 2, 2]).plot(4)  # the mean is 2
    assert [bar.get_height() for bar in axes.patches if bar.get_hatch()] == [3]
    assert axes.get_title() == "hot subtask 0 of 4 has the most, 3: 1.50 times the mean"


@pytest.mark.extras
def test_key_groups(pyplot: Any) -> None:
    axes = LOAD.plot_key_groups()
    assert bars(axes) == list(LOAD.weights)
    assert axes.get_title() == "key group 0 has the most, 5 of 12"


@pytest.mark.extras
def test_no_bar_is_behind_the_legend(pyplot: Any) -> None:
    even, half_hot = KeyGroupLoad(64, [1] * 64), KeyGroupLoad(64, [1] * 16 + [0] * 32 + [1] * 16)
    pictures: list[Any] = [even.plot(4), even.plot_key_groups(), half_hot.plot(64)]
    for axes in pictures:
        axes.figure.canvas.draw()
        behind = axes.get_legend().get_window_extent()
        assert not any(behind.overlaps(bar.get_window_extent()) for bar in axes.patches)
        assert not any(behind.overlaps(line.get_window_extent()) for line in axes.lines)


@pytest.mark.extras
def test_recommendations(pyplot: Any) -> None:
    """Of 12 the heaviest subtask has 12, 8, 7 and 6 at 1 to 4, still 6 up to 7, and 5 at 8."""
    _, passed = pyplot.subplots()
    axes = LOAD.recommend(1, 8).plot(passed)
    assert axes is passed
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
    assert axes.get_title() == "best is parallelism 8, 5 in its heaviest subtask"
    assert Recommendations().plot().get_title() == "no parallelism"


@pytest.mark.extras
def test_recommendations_of_no_weight(pyplot: Any) -> None:
    axes: Any = KeyGroupLoad(8, {}).recommend(2, 8).plot()
    assert [list(line.get_ydata()) for line in axes.lines] == [[0], [0]]


@pytest.mark.extras
def test_plan(pyplot: Any) -> None:
    _, passed = pyplot.subplots()
    axes = PLAN.plot(ax=passed)
    assert axes is passed
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
    others = [drawn for drawn in axes.collections if drawn not in bands]
    assert [line.tolist() for lines in others for line in lines.get_segments()] == [
        *([[start, 2], [start, 3]] for start in (0, 4)),
        *([[start, 0], [start, 1]] for start in (0, 3, 6)),
    ]


@pytest.mark.extras
def test_the_legend_of_a_plan_is_beside_it_and_in_the_picture(pyplot: Any) -> None:
    axes: Any = PLAN.plot()
    axes.figure.canvas.draw()
    legend, plot = axes.get_legend().get_window_extent(), axes.get_window_extent()
    assert plot.x1 < legend.x0 < legend.x1 < axes.figure.bbox.x1
    assert plot.y0 < legend.y0 < legend.y1 < plot.y1


@pytest.mark.extras
def test_plan_with_a_load(pyplot: Any) -> None:
    axes: Any = RescaleReport(PLAN, LOAD).plot()
    [image] = axes.images
    assert image.get_array().tolist() == [list(LOAD.weights)]
    assert image.get_clim() == (0, 5)  # no weight is white, the heaviest black
    groups = PLAN.max_parallelism
    assert [*image.get_extent()] == [0, groups, 1, 2]  # between the old subtasks and the new ones
    assert (axes.get_xlim(), axes.get_ylim()) == ((0, groups), (0, 3))
    rows = dict(zip((label.get_text() for label in axes.get_yticklabels()), axes.get_yticks()))
    assert rows == {"new subtasks": 0.5, "key groups,\ndark: heavy": 1.5, "old subtasks": 2.5}


def ticks(axes: Any) -> list[list[str]]:
    """Return the texts at the ticks of both axes, within the picture."""
    axes.figure.canvas.draw()
    return [
        [tick.get_text() for tick in axis.get_ticklabels()] for axis in (axes.xaxis, axes.yaxis)
    ]


@pytest.mark.extras
def test_ints_stand_at_ints(pyplot: Any) -> None:
    """There is no subtask 0.5, no key group 2.5, and no half of a record."""
    few = KeyGroupLoad(2, [1, 2])
    pictures = [few.plot(2), few.plot_key_groups(), few.recommend(1, 2).plot()]
    for axes in (*pictures, RescalePlan(2, 1, 2).plot()):
        for tick in ticks(axes)[0]:
            int(tick.replace("\u2212", "-"))
    for axes in pictures:
        for tick in ticks(axes)[1]:
            int(tick)
    assert ticks(KeyGroupLoad(2, [0.25, 0.5]).plot(2))[1][1] != "0"
    assert ticks(KeyGroupLoad(2, [40_000, 1]).plot(2))[1][-1].endswith(",000")


@pytest.mark.extras
@pytest.mark.parametrize("style", ["default", "dark_background"])
def test_lines_and_texts_read_on_any_style(pyplot: Any, style: str) -> None:
    """They are as far from the background as its own text is."""
    from matplotlib.colors import to_rgb

    def light(colour: Any) -> float:
        red, green, blue = to_rgb(colour)
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    with pyplot.style.context(style):
        bars_axes: Any = LOAD.plot(4)
        steps_axes: Any = LOAD.recommend(1, 8).plot()
        plan_axes: Any = PLAN.plot()
        behind = light(bars_axes.get_facecolor())
        for line in (bars_axes.lines[0], steps_axes.lines[1]):
            assert abs(light(line.get_color()) - behind) > 0.7
        for text in plan_axes.texts:
            box = text.get_bbox_patch().get_facecolor()
            assert abs(light(text.get_color()) - light(box)) > 0.7
        hot = [bar for bar in bars_axes.patches if bar.get_hatch()]
        assert light(hot[0].get_edgecolor()) == pytest.approx(behind)
        assert abs(light(hot[0].get_facecolor()) - behind) > 0.2


@pytest.mark.extras
def test_many_subtasks_have_no_numbers(pyplot: Any) -> None:
    assert list(RescalePlan(128, 33, 40).plot().texts) == []
    assert len(RescalePlan(128, 33, 32).plot().texts) == 32


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
