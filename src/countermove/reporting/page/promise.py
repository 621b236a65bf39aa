"""The recourse certificate in words, and every other claim with its level."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from countermove.reporting.numbers import number, share
from countermove.reporting.page.citing import Cited
from countermove.reporting.page.findings import Findings
from countermove.reporting.page.layout import Section
from countermove.reporting.page.markup import (
    Markup,
    absent,
    bullets,
    folded,
    html,
    joined,
    paragraph,
    unbroken,
)
from countermove.reporting.page.plain import html_table
from countermove.reporting.tables import promise_line

CLAIMS = {
    "recourse_miss_rate": "share of people without a way to approval",
    "recourse_miss_rate_after_response": (
        "share of people without a way to approval once they have answered the rule"
    ),
    "refused_miss_rate": "share of the refused without a way to approval, as asked",
    "refused_without_recourse": "share of the refused without a way to approval",
    "error_after_response": "share judged wrongly once people have moved",
}


def promise_section(found: Findings) -> Section:
    """Return the section: the promise, what it rests on, and every claim."""
    cited = Cited("certificates.json", found.certificates)
    parts = (_promise(found), _claims(cited), _assumptions(found))
    return Section("promise", "What is promised", "Promise", joined(parts))


def _promise(found: Findings) -> Markup:
    if found.calibration is None:
        return absent("No promise of recourse has been made yet.", found.command("recourse"))
    cited = Cited(f"{found.output}/recourse_calibration.json", found.calibration)
    words = promise_line(found.calibration)
    said = f"{words[:1].upper()}{words[1:]}."
    return joined(
        (
            Markup(f'<div class="promise"><p>{html(said)}</p></div>'),
            paragraph(
                "Counted on ",
                cited.link("certificate", "n"),
                " people that training never saw. A promise holds with its level over the draw of "
                "these people, and only as far as its assumptions do.",
            ),
        )
    )


def _claims(cited: Cited) -> Markup:
    rows = [_claim(cited, i) for i in range(len(cited.facts))]
    head = ("claim", "bound", "holds with probability", "rows")
    return html_table(head, rows, "Every claim of this run")


def claimed(claim: Mapping[str, Any]) -> str:
    """Return what a claim is about; one about a group names it in brackets."""
    kind, _, group = claim["name"].partition("[")
    words: str = CLAIMS.get(kind, kind)
    return words + (f" ({group.removesuffix(']')})" if group else "")


def _claim(cited: Cited, i: int) -> tuple[str, ...]:
    """Return one line of the claims."""
    claim = cited.value(i)
    what = claimed(claim)
    rows = cited.link(i, "n")
    if claim["value"] is None:
        return what, f"not promised: {claim['reason']}", "", rows
    side = "most" if claim["direction"] == "upper" else "least"
    bound = unbroken(f"at {side} ", cited.link(i, "value", by=number))
    return what, bound, cited.link(i, "level", by=lambda value: share(value, 0)), rows


def _assumptions(found: Findings) -> Markup:
    """Return what the claims rest on, each statement once, and whether the data speak to it."""
    known: dict[str, Any] = {}
    for claim in found.certificates:
        for entry in claim.get("assumptions", ()):
            known.setdefault(entry["statement"], entry)
    if not known:
        return Markup("")
    verdicts = {None: "not tested here", True: "the data support it", False: "the data refute it"}
    items = [
        f"{statement} ({entry['evidence'] or verdicts[entry['supported']]})"
        for statement, entry in known.items()
    ]
    return folded("What these claims assume", bullets(items))
