"""The same charts for the page, with values under the pointer: pieces of HTML that need plotly's script in the page."""

from __future__ import annotations

import html
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import plotly.graph_objects as go
import plotly.io
from plotly.offline import get_plotlyjs

from pinoise.report.charts import COLOURS, MARKED, Panel, Ranking, shortened

if TYPE_CHECKING:
    from pinoise.report.maps import Colouring, Frame

# Titles and keys stand in the page beside a chart: there they break lines and cannot overlap. A wheel scrolls the page.
_CONFIG = {"displayModeBar": False, "responsive": True}
_FONT = {"size": 12, "family": "system-ui, sans-serif", "color": "#3d4451"}
_LAYOUT = {"template": "plotly_white", "font": _FONT, "margin": {"l": 12, "r": 12, "t": 8, "b": 40}, "dragmode": False}


def script() -> str:
    """Return the script that draws the charts; a page needs it once."""
    return str(get_plotlyjs())


def curves_html(panel: Panel, *, colours: Mapping[str, str], name: str, x: str = "epoch") -> str:
    """Return curves over epochs, or over ``x``, in their colours; the name tells charts of one page apart."""
    figure = go.Figure()
    for label, (epochs, values) in panel.lines.items():
        mode = "lines+markers" if len(epochs) < MARKED else "lines"
        line = {"color": colours[label], "width": 2}
        figure.add_trace(go.Scatter(x=epochs, y=values, name=label, mode=mode, line=line, marker={"size": 5}))
    figure.update_xaxes(title_text=x, zeroline=False)
    figure.update_yaxes(automargin=True, zeroline=False)
    figure.update_layout(height=280, showlegend=False, hovermode="x unified", **_LAYOUT)
    return _piece(figure, name)


def map_html(points: npt.NDArray[np.float64], frame: Frame, colouring: Colouring, *, name: str) -> str:
    """Return points of a map in their colours, each with its text under the pointer; a double click shows all."""
    texts = [html.escape(text, quote=False) for text in colouring.texts]
    dots = go.Scatter(
        x=points[:, 0].round(4).tolist(),
        y=points[:, 1].round(4).tolist(),
        mode="markers",
        marker={"color": colouring.colours, "size": 6, "opacity": 0.8},
        hovertext=texts,
        hovertemplate="%{hovertext}<extra></extra>",
    )
    figure = go.Figure(dots)
    bare = {"showticklabels": False, "zeroline": False, "showgrid": False, "showline": False}
    figure.update_xaxes(range=frame.x, **bare)
    figure.update_yaxes(range=frame.y, **bare)
    layout = {**_LAYOUT, "plot_bgcolor": "#fafafa", "margin": {"l": 4, "r": 4, "t": 4, "b": 4}}
    figure.update_layout(height=330, showlegend=False, **layout)
    return _piece(figure, f"map-{name}")


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
    figure.update_layout(height=70 + 22 * max(4, len(names)), **_LAYOUT)
    figure.update_yaxes(tickvals=places, ticktext=names, autorange="reversed", automargin=True)
    figure.update_xaxes(title_text=f"mean {symbol} in standard deviations of the feature", rangemode="tozero")
    return _piece(figure, "bars")


def _piece(figure: go.Figure, name: str) -> str:
    return str(
        plotly.io.to_html(figure, include_plotlyjs=False, full_html=False, div_id=f"chart-{name}", config=_CONFIG)
    )
