"""Small plots as SVG text: no dependency, the same bytes every time, readable in light and dark."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from html import escape

BLIND, STRATEGIC, QUIET = "#d9730d", "#00897b", "#8a8f98"
SERIES = (STRATEGIC, BLIND, "#5b6ee1", "#b0489b", QUIET)
STYLE = (
    "text{font:13px system-ui,sans-serif;fill:#2b2f36}"
    ".small{font-size:11.5px}.title{font-weight:600}"
    ".frame{fill:none;stroke:#9aa0a8}.grid{stroke:#9aa0a8;stroke-opacity:.28}"
    "@media (prefers-color-scheme:dark){text{fill:#dfe3ea}}"
)
MARGIN = (34, 14, 46, 56)
"""Room above, right of, below and left of a panel, in pixels."""

Pairs = Iterable[Sequence[float]]


def ticks(low: float, high: float, count: int = 5) -> list[float]:
    """Return round numbers between two ends."""
    step = 10 ** math.floor(math.log10((high - low) / count))
    step *= min((m for m in (1, 2, 5, 10) if (high - low) / (step * m) <= count), default=10)
    first = math.ceil(low / step - 1e-9)
    return [round(k * step, 10) for k in range(first, math.floor(high / step + 1e-9) + 1)]


def number(value: float) -> str:
    """Return a tick's label."""
    if value and (abs(value) >= 1e4 or abs(value) < 1e-3):
        return f"1e{round(math.log10(abs(value)))}"
    return f"{value:g}"


@dataclass
class Panel:
    """One pair of axes; positions are given in data units.

    Parameters
    ----------
    x, y
        Ends of the axes.
    x_label, y_label, title
        In words, with units.
    log_x, log_y
        Whether an axis is logarithmic.
    names
        Labels in place of numbers on the x axis, at 0, 1, …
    """

    x: tuple[float, float]
    y: tuple[float, float]
    x_label: str = ""
    y_label: str = ""
    title: str = ""
    log_x: bool = False
    log_y: bool = False
    names: tuple[str, ...] = ()
    width: int = 380
    height: int = 320
    marks: list[str] = field(default_factory=list)

    def at(self, x: float, y: float) -> tuple[float, float]:
        """Return the pixel of a place, kept inside the frame."""
        top, right, bottom, left = MARGIN
        across = left + _share(x, *self.x, self.log_x) * (self.width - left - right)
        up = _share(y, *self.y, self.log_y) * (self.height - top - bottom)
        return round(across, 1), round(self.height - bottom - up, 1)

    def dots(self, places: Pairs, colour: str, *, hollow: bool = False, size: float = 3.2) -> None:
        """Draw people."""
        fill = "none" if hollow else colour
        for x, y in places:
            px, py = self.at(x, y)
            self.marks.append(
                f'<circle cx="{px}" cy="{py}" r="{size}" fill="{fill}" stroke="{colour}"/>'
            )

    def line(self, places: Pairs, colour: str, *, dashed: bool = False, width: float = 2) -> None:
        """Draw a line through places."""
        path = " ".join("{},{}".format(*self.at(x, y)) for x, y in places)
        dash = ' stroke-dasharray="6 4"' if dashed else ""
        self.marks.append(
            f'<polyline points="{path}" fill="none" stroke="{colour}" '
            f'stroke-width="{width}"{dash}/>'
        )

    def moves(self, starts: Pairs, ends: Pairs, colour: str) -> None:
        """Draw arrows from where people stood to where they went."""
        for start, end in zip(starts, ends, strict=True):
            (ax, ay), (bx, by) = self.at(*start), self.at(*end)
            self.marks.append(
                f'<line x1="{ax}" y1="{ay}" x2="{bx}" y2="{by}" stroke="{colour}" '
                f'stroke-opacity=".75" marker-end="url(#tip)"/>'
            )

    def bar(self, x: float, y: float, colour: str, width: float) -> None:
        """Draw a bar from the lower end of the axis."""
        (left, top), (right, bottom) = self.at(x - width / 2, y), self.at(x + width / 2, self.y[0])
        self.marks.append(
            f'<rect x="{left}" y="{top}" width="{right - left:.1f}" height="{bottom - top:.1f}" '
            f'fill="{colour}"/>'
        )

    def say(self, x: float, y: float, text: str, colour: str = "", anchor: str = "start") -> None:
        """Write a word at a place."""
        px, py = self.at(x, y)
        fill = f' style="fill:{colour}"' if colour else ""
        self.marks.append(
            f'<text x="{px}" y="{py}" class="small" text-anchor="{anchor}"{fill}>'
            f"{escape(text)}</text>"
        )

    def svg(self, offset: int) -> str:
        """Return the panel, moved right by ``offset`` pixels."""
        (left, bottom), (right, top) = self.at(self.x[0], self.y[0]), self.at(self.x[1], self.y[1])
        axes = [*self._x_axis(top, bottom), *self._y_axis(left, right)]
        frame = (
            f'<rect class="frame" x="{left}" y="{top}" width="{right - left:.1f}" '
            f'height="{bottom - top:.1f}"/>'
        )
        middle = (left + right) / 2
        words = [
            f'<text class="title" x="{left}" y="20">{escape(self.title)}</text>',
            f'<text x="{middle:.1f}" y="{self.height - 8}" text-anchor="middle">'
            f"{escape(self.x_label)}</text>",
            f'<text transform="translate(14 {(top + bottom) / 2:.1f}) rotate(-90)" '
            f'text-anchor="middle">{escape(self.y_label)}</text>',
        ]
        return "\n".join(
            [f'<g transform="translate({offset} 0)">', *axes, frame, *self.marks, *words, "</g>"]
        )

    def _x_axis(self, top: float, bottom: float) -> list[str]:
        places = dict(enumerate(self.names)) or {
            value: number(value) for value in _places(self.x, self.log_x)
        }
        found = []
        for value, label in places.items():
            px, _ = self.at(value, self.y[0])
            if not self.names:
                found.append(f'<line class="grid" x1="{px}" y1="{top}" x2="{px}" y2="{bottom}"/>')
            found.append(
                f'<text class="small" x="{px}" y="{bottom + 16:.1f}" text-anchor="middle">'
                f"{escape(label)}</text>"
            )
        return found

    def _y_axis(self, left: float, right: float) -> list[str]:
        found = []
        for value in _places(self.y, self.log_y):
            _, py = self.at(self.x[0], value)
            found.append(f'<line class="grid" x1="{left}" y1="{py}" x2="{right}" y2="{py}"/>')
            found.append(
                f'<text class="small" x="{left - 6}" y="{py + 4:.1f}" text-anchor="end">'
                f"{number(value)}</text>"
            )
        return found


def _share(value: float, low: float, high: float, log: bool) -> float:
    if log:
        value, low, high = (math.log10(max(v, 1e-300)) for v in (value, low, high))
    return min(max((value - low) / (high - low), 0.0), 1.0)


def _places(ends: tuple[float, float], log: bool) -> list[float]:
    if not log:
        return ticks(*ends)
    low, high = (math.log10(end) for end in ends)
    every = max(1, round((high - low) / 6))
    powers = [10.0**k for k in range(math.ceil(low), math.floor(high) + 1, every)]
    if len(powers) >= 3:
        return powers
    fine = [m * 10.0**k for k in range(math.floor(low), math.ceil(high) + 1) for m in (1, 2, 5)]
    return [value for value in fine if ends[0] <= value <= ends[1]]


def picture(panels: Sequence[Panel], title: str) -> str:
    """Return panels side by side as one SVG; ``title`` is the picture in words."""
    width = sum(panel.width for panel in panels)
    height = max(panel.height for panel in panels)
    offsets = [sum(panel.width for panel in panels[:i]) for i in range(len(panels))]
    tip = (
        '<defs><marker id="tip" viewBox="0 0 6 6" refX="5" refY="3" markerWidth="5" '
        'markerHeight="5" orient="auto"><path d="M0 0L6 3L0 6z" fill="#7c828c"/></marker></defs>'
    )
    drawn = [panel.svg(offset) for panel, offset in zip(panels, offsets, strict=True)]
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}" role="img">'
    )
    return "\n".join(
        [
            head,
            f"<title>{escape(title)}</title>",
            f"<style>{STYLE}</style>",
            tip,
            *drawn,
            "</svg>\n",
        ]
    )
