"""The same charts for the page, with values under the pointer: pieces of HTML that need plotly's script in the page."""

from __future__ import annotations

import html
from collections.abc import Sequence

import plotly.graph_objects as go
import plotly.io
from plotly.offline import get_plotlyjs
from plotly.subplots import make_subplots

from pinoise.report.charts import COLOURS, Panel, Ranking, shortened

_CONFIG = {"displaylogo": False, "responsive": True, "modeBarButtonsToRemove": ["lasso2d", "select2d"]}
_LAYOUT = {"template": "plotly_white", "font": {"size": 13}, "margin": {"l": 20, "r": 20, "t": 70, "b": 50}}
# The margin above leaves the buttons, which show up there, clear of the titles.


def script() -> str:
    """Return the script that draws the charts; a page needs it once."""
    return str(get_plotlyjs())


def curves_html(panels: Sequence[Panel], *, name: str = "curves", x: str = "epoch") -> str:
    """Return curves over epochs, or over ``x``; the name tells charts of one page apart."""
    figure = make_subplots(rows=1, cols=len(panels), subplot_titles=[panel.title for panel in panels])
    named: set[str] = set()
    for number, panel in enumerate(panels, start=1):
        for colour, (label, (epochs, values)) in zip(COLOURS, panel.lines.items(), strict=False):
            line = go.Scatter(x=epochs, y=values, name=label, mode="lines+markers", line={"color": colour})
            line.update(legendgroup=label, showlegend=label not in named)  # panels may share their lines
            named.add(label)
            figure.add_trace(line, row=1, col=number)
        figure.update_xaxes(title_text=x, row=1, col=number)
    figure.update_yaxes(automargin=True)
    figure.update_layout(height=390, legend={"orientation": "h", "y": -0.25}, **_LAYOUT)
    return _piece(figure, name)


def bars_html(ranking: Ranking, *, symbol: str) -> str:
    """Return the bar chart of σ per feature."""
    # Plotly interprets some tags in text; names must stay text.
    names = [html.escape(shortened(name), quote=False) for name in ranking.names]
    full = [html.escape(name, quote=False) for name in ranking.names]
    places = list(range(len(names)))
    spread = {
        "type": "data",
        "symmetric": False,
        "array": (ranking.high - ranking.mean).clip(min=0).tolist(),
        "arrayminus": (ranking.mean - ranking.low).clip(min=0).tolist(),
        "thickness": 1,
        "width": 0,
    }
    bars = go.Bar(
        x=ranking.mean.tolist(),
        y=places,
        orientation="h",
        error_x=spread,
        hovertext=full,
        hovertemplate=f"%{{hovertext}}: {symbol} %{{x:.3f}}<extra></extra>",
        marker={"color": COLOURS[0]},
    )
    figure = go.Figure(bars)
    figure.update_layout(height=150 + 22 * max(4, len(names)), **_LAYOUT)
    figure.update_yaxes(tickvals=places, ticktext=names, autorange="reversed", automargin=True)
    figure.update_xaxes(title_text=f"mean {symbol} in standard deviations of the feature", rangemode="tozero")
    return _piece(figure, "bars")


def _piece(figure: go.Figure, name: str) -> str:
    return str(
        plotly.io.to_html(figure, include_plotlyjs=False, full_html=False, div_id=f"chart-{name}", config=_CONFIG)
    )
