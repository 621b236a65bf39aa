"""How often each rule is right: where people stand, and once they have answered it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from countermove.reporting.numbers import points, share
from countermove.reporting.page.citing import Cited
from countermove.reporting.page.findings import Findings
from countermove.reporting.page.layout import Section, chart, lines_of
from countermove.reporting.page.markup import Markup, joined, paragraph
from countermove.reporting.page.plain import html_table
from countermove.reporting.tables import called, left_out_lines

RULES = {"blind": "Blind rule", "strategic": "Strategic rule"}
MEANING = {
    "blind": "trained as if nobody moved",
    "strategic": "trained on where people will stand, threshold calibrated",
}
ACCURACY = "accuracy"
MARKS = {"blind": "circle-open", "strategic": "diamond"}


def headline(found: Findings) -> Section:
    """Return the section: one sentence, four numbers, and accuracy under every response."""
    cited = found.cited
    return Section(
        "headline",
        "How often the rule is right",
        "Headline",
        joined(
            (
                _sentence(cited),
                Markup(f'<div class="tiles">{joined(_tile(cited, rule) for rule in RULES)}</div>'),
                _calibration(cited),
                Markup("<h3>If people answer differently</h3>"),
                paragraph(
                    "How people answer is an assumption. Each line is another one; the stated one "
                    "is marked, and the distance between the marks is what strategic training "
                    "brings or costs under it."
                ),
                _responses(cited),
                *(paragraph(f"Not evaluated: {line}.", kind="note") for line in _left_out(cited)),
            )
        ),
    )


def _sentence(cited: Cited) -> Markup:
    """Return the outcome in one sentence."""
    after = cited.value(ACCURACY, "after_response")
    gain = points(after["strategic"], after["blind"])
    more = f"{abs(gain):.1f} points {'more' if gain > 0 else 'less'} often than"
    verdict = more if gain else "as often as"
    return paragraph(
        "Once people have answered the rule, the strategic rule is right for ",
        cited.link(ACCURACY, "after_response", "strategic", by=share),
        f" of them, {verdict} the blind rule (",
        cited.link(ACCURACY, "after_response", "blind", by=share),
        "). Where nobody moves, it is ",
        cited.link(ACCURACY, "nobody_moves", "strategic", by=share),
        " against ",
        cited.link(ACCURACY, "nobody_moves", "blind", by=share),
        ".",
        kind="said",
    )


def _tile(cited: Cited, rule: str) -> Markup:
    """Return one rule's two numbers, and what people's answer does to it."""
    before, after = (cited.value(ACCURACY, k, rule) for k in ("nobody_moves", "after_response"))
    change = points(after, before)
    told = (
        f"{'Gains' if change > 0 else 'Loses'} {abs(change):.1f} points" if change else "The same"
    )
    return Markup(
        f'<div class="tile {rule}"><h3>{RULES[rule]}</h3><dl>'
        f"<dt>nobody moves</dt><dd>{cited.link(ACCURACY, 'nobody_moves', rule, by=share)}</dd>"
        f"<dt>everyone answers</dt>"
        f"<dd>{cited.link(ACCURACY, 'after_response', rule, by=share)}</dd></dl>"
        f"<p>{told} when people answer it; {MEANING[rule]}.</p></div>"
    )


def _calibration(cited: Cited) -> Markup:
    """Return what the promise of recourse changed about the strategic rule."""
    return paragraph(
        "Measured on ",
        cited.link("rows", "test"),
        " test rows. People are assumed to answer by ",
        cited.linked(called(cited.value("response", "kind")), "response", "kind"),
        "; the published threshold on the probability is ",
        cited.link("threshold"),
        ", and before it was calibrated for recourse the strategic rule was right for ",
        cited.link(ACCURACY, "uncalibrated", "strategic", by=share),
        ".",
        kind="note",
    )


def _kinds(cited: Cited) -> list[tuple[str, tuple[str, ...]]]:
    """Return every kind of people: its words and where its accuracies stand."""
    stated = cited.value("response", "kind")
    rest = [name for name in cited.value(ACCURACY, "sensitivity") if name not in ("none", stated)]
    return [
        ("nobody moves", ("nobody_moves",)),
        (f"{called(stated)} (assumed)", ("after_response",)),
        *((called(name), ("sensitivity", name)) for name in rest),
    ]


def _responses(cited: Cited) -> Markup:
    """Return the figure: one line per kind of people, one mark per rule."""
    kinds = _kinds(cited)
    rows = [
        (words, *(cited.link(ACCURACY, *path, rule, by=share) for rule in RULES))
        for words, path in kinds
    ]
    table = html_table(
        ("how people answer", *RULES.values()), rows, "Share judged right, by how people answer"
    )
    places = [lines_of(words) for words, _ in kinds]
    data: list[dict[str, Any]] = [_span(cited, kinds, places)]
    for rule, words in RULES.items():
        data.append(
            {
                "type": "scatter",
                "mode": "markers",
                "name": words,
                "y": places,
                "x": [cited.value(ACCURACY, *path, rule) for _, path in kinds],
                "marker": {
                    "symbol": MARKS[rule],
                    "size": 12,
                    "color": f"var:{rule}",
                    "line": {"width": 2.5, "color": f"var:{rule}"},
                },
                "hovertemplate": "%{x:.1%}<extra>" + words + "</extra>",
            }
        )
    layout = {
        "xaxis": {"title": {"text": "share judged right"}, "tickformat": ".0%"},
        "yaxis": {"autorange": "reversed"},
    }
    said = "Share judged right by the blind and the strategic rule, for each way people may answer."
    caption = "Accuracy of both rules on the test rows, by how people answer."
    return chart(
        "responses",
        caption,
        said,
        {"data": data, "layout": layout},
        table,
        height=90 + 46 * len(kinds),
    )


def _span(
    cited: Cited, kinds: Sequence[tuple[str, tuple[str, ...]]], places: Sequence[str]
) -> dict[str, Any]:
    """Return the thin line that joins both rules' marks."""
    x: list[float | None] = []
    y: list[str | None] = []
    for (_, path), place in zip(kinds, places, strict=True):
        x += [*(cited.value(ACCURACY, *path, rule) for rule in RULES), None]
        y += [place, place, None]
    line = {"color": "var:line", "width": 4}
    return {"type": "scatter", "mode": "lines", "x": x, "y": y, "line": line} | {
        "showlegend": False,
        "hoverinfo": "skip",
    }


def _left_out(cited: Cited) -> list[str]:
    facts: Any = cited.facts
    return left_out_lines(facts)
