"""Pictures in SVG, drawn by matplotlib. The same figures give the same bytes."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from io import StringIO
from typing import Any

Series = Mapping[str, Sequence[tuple[float, float]]]

_WIDTH_INCHES, _HEIGHT_INCHES, _BAR_INCHES = 8.0, 3.8, 0.3
_STYLE = {"svg.hashsalt": "dueline", "svg.fonttype": "none", "font.size": 10, "axes.grid": True, "grid.alpha": 0.3}
_BIN_COUNT = 60


def bars(*, title: str, unit: str, values: Mapping[str, float], bound: float | None = None) -> str:
    """Draw a bar a name, and a line at the bound where there is one."""
    with _drawing(title, height=max(_HEIGHT_INCHES, _BAR_INCHES * len(values))) as (axes, drawn):
        drawn_bars = axes.barh(list(values), list(values.values()), color="tab:blue")
        axes.bar_label(drawn_bars, fmt="%.3g", padding=3)
        axes.invert_yaxis()
        axes.set_xlabel(unit)
        if bound is not None:
            axes.axvline(bound, color="tab:red", linestyle="--", label=f"target: {bound:g}")
            axes.legend()
    return drawn.getvalue()


def stacked(*, title: str, unit: str, values: Mapping[str, Mapping[str, float]]) -> str:
    """Draw a bar a name, made of its parts one after the other."""
    with _drawing(title) as (axes, drawn):
        names, left = list(values), [0.0] * len(values)
        for part in dict.fromkeys(part for parts in values.values() for part in parts):
            widths = [values[name].get(part, 0.0) for name in names]
            axes.barh(names, widths, left=left, label=part)
            left = [start + width for start, width in zip(left, widths, strict=True)]
        axes.invert_yaxis()
        axes.set_xlabel(unit)
        axes.legend(fontsize=8, loc="upper left", bbox_to_anchor=(1, 1))
    return drawn.getvalue()


def lines(*, title: str, x: str, y: str, series: Series, log_x: bool = False, log_y: bool = False) -> str:
    """Draw a line a name through its points."""
    with _drawing(title) as (axes, drawn):
        for name, points in series.items():
            axes.plot(*zip(*points, strict=True), marker="o", markersize=3, label=name)
        _scale(axes, log_x=log_x, log_y=log_y)
        axes.set(xlabel=x, ylabel=y)
        axes.legend(fontsize=8, loc="upper left", bbox_to_anchor=(1, 1))
    return drawn.getvalue()


def histogram(*, title: str, x: str, series: Mapping[str, Sequence[float]], log_x: bool = False) -> str:
    """Draw how often each value comes, as a share of its name's, one outline a name."""
    with _drawing(title) as (axes, drawn):
        for name, values in series.items():
            weights = [1 / len(values)] * len(values)
            axes.hist(values, bins=_bins(series, log_x), weights=weights, histtype="step", linewidth=1.5, label=name)
        _scale(axes, log_x=log_x, log_y=False)
        axes.set(xlabel=x, ylabel="share of jobs")
        axes.legend(fontsize=8, loc="upper left", bbox_to_anchor=(1, 1))
    return drawn.getvalue()


def _bins(series: Mapping[str, Sequence[float]], log: bool) -> list[float]:
    values = [value for each in series.values() for value in each if value > 0 or not log]
    low, high = min(values), max(values)
    steps = [step / _BIN_COUNT for step in range(_BIN_COUNT + 1)]
    if log:
        return [low * (high / low) ** step for step in steps]
    return [low + (high - low) * step for step in steps]


def _scale(axes: Any, *, log_x: bool, log_y: bool) -> None:
    if log_x:
        axes.set_xscale("log")
    if log_y:
        axes.set_yscale("log")


@contextmanager
def _drawing(title: str, *, height: float = _HEIGHT_INCHES) -> Iterator[tuple[Any, StringIO]]:
    """Yield the axes to draw on, and what holds the picture once the context is left."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    drawn = StringIO()
    with matplotlib.rc_context(_STYLE):
        figure, axes = pyplot.subplots(figsize=(_WIDTH_INCHES, height), layout="constrained")
        yield axes, drawn
        axes.set_title(title, loc="left", fontsize=11)
        figure.savefig(drawn, format="svg", metadata={"Date": None})
        pyplot.close(figure)
