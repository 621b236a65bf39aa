"""The pictures of these pages, each drawn from the numbers of ``measured``."""

from __future__ import annotations

from typing import Any

from drawing import BLIND, QUIET, SERIES, STRATEGIC, Panel, picture

Numbers = dict[str, Any]
WIDE = 620


def move_map(found: Numbers) -> str:
    """Draw both rules, the people and their moves."""
    said = {"blind": "A rule that forgets people", "strategic": "A rule that counts on them"}
    colours = {"blind": BLIND, "strategic": STRATEGIC}
    panels = []
    for name, title in said.items():
        rule = found[name]
        panel = Panel((-4.0, 4.4), (-6.4, 4.2), "one feature", "another", title)
        _people(panel, found, rule)
        (w1, w2), b = rule["weights"], rule["intercept"]
        ends = [(x, -(b + w1 * x) / w2) for x in (-4.0, 4.4)]
        inside = [(x, y) for x, y in _between(ends) if -3.6 <= y <= 4.2]
        panel.line(inside, colours[name], width=2.5)
        panel.say(-3.8, -5.25, f"nobody moves: {rule['nobody_moves']:.1%} right")
        panel.say(-3.8, -6.05, f"people answer: {rule['after_response']:.1%} right", colours[name])
        panels.append(panel)
    return picture(
        panels,
        "Two panels with the same people. On the left a rule trained as if nobody moved: people "
        "below its line step over it. On the right the line lies higher, and those who step over "
        "it are mostly those who should.",
    )


def _between(ends: list[tuple[float, float]]) -> list[tuple[float, float]]:
    (x0, y0), (x1, y1) = ends
    return [(x0 + (x1 - x0) * k / 400, y0 + (y1 - y0) * k / 400) for k in range(401)]


def _people(panel: Panel, found: Numbers, rule: Numbers) -> None:
    people = list(zip(found["before"], rule["after"], found["label"], strict=True))
    moved = [(a, b) for a, b, _ in people if a != b]
    panel.moves([a for a, _ in moved], [b for _, b in moved], "#7c828c")
    for label, colour in ((1.0, "#3f6fd8"), (-1.0, "#c2417c")):
        panel.dots([a for a, _, y in people if y == label], colour, size=2.8)


def cost(found: Numbers) -> str:
    """Draw accuracy over the price of a move."""
    panel = Panel(
        (0.22, 220),
        (0.5, 1.0),
        "price of a move (scale of the cost)",
        "accuracy after response",
        "What the assumed price of a move changes",
        log_x=True,
        width=WIDE,
    )
    curves = {
        "right price assumed": (found["right price"], STRATEGIC),
        "nobody moves assumed": (found["blind"], BLIND),
        "price 1 assumed": (found["price 1 assumed"], SERIES[2]),
    }
    for name, (values, colour) in curves.items():
        places = list(zip(found["scale"], values, strict=True))
        panel.line(places, colour)
        panel.dots(places, colour, size=2.4)
        beside = {"nobody moves assumed": 0.012, "right price assumed": -0.028}.get(name, -0.008)
        panel.say(36, values[-1] + beside, name, colour)
    return picture(
        [panel],
        "Three curves of accuracy over the price of a move. With the right price it stays level; "
        "assuming that nobody moves costs most where moves are cheap; a wrong price costs on "
        "either side of the right one.",
    )


def responses(found: Numbers) -> str:
    """Draw accuracy of each rule under each kind of people."""
    words = {
        "none": "nobody",
        "best": "best response",
        "smooth": "smoothed",
        "published": "paper's",
    }
    kinds = found["people"]
    panel = Panel(
        (-0.5, len(kinds) - 0.5),
        (0.6, 1.0),
        "people who meet the rule",
        "accuracy",
        "A rule trained for one kind of people, met by another",
        names=tuple(words[kind] for kind in kinds),
        width=WIDE,
    )
    for k, trained in enumerate(kinds):
        for place, value in enumerate(found[trained]):
            panel.bar(place + (k - 1.5) * 0.19, value, SERIES[k], 0.17)
        panel.say((-0.42, 0.46, 1.62, 2.62)[k], 0.975, f"trained for {words[trained]}", SERIES[k])
    return picture(
        [panel],
        "Bars of accuracy in four groups, one per kind of people; each rule is best for the people "
        "it was trained for and loses up to a fifth with others.",
    )


def promise(found: Numbers) -> str:
    """Draw the share missed over thresholds, and where the promise ends."""
    panel = Panel(
        (0.0, 0.9),
        (0.0, 0.3),
        "threshold of the probability",
        "share left without a way",
        "A threshold with a promise",
        width=WIDE,
    )
    panel.line(list(zip(found["threshold"], found["missed"], strict=True)), QUIET, width=2.5)
    panel.line([(0.0, 0.05), (0.9, 0.05)], BLIND, dashed=True)
    panel.say(0.88, 0.056, "5 % tolerated", BLIND, "end")
    panel.line([(found["limit"], 0.0), (found["limit"], 0.3)], STRATEGIC)
    beside = found["limit"] + 0.012
    panel.say(beside, 0.27, f"promised up to {found['limit']:.2f}", STRATEGIC)
    panel.say(beside, 0.247, f"from {found['rows']:,} people", STRATEGIC)
    panel.say(0.88, 0.12, "truth, 20,000 people", QUIET, "end")
    return picture(
        [panel],
        "The share of people who are neither approved nor have a way to approval rises with the "
        "threshold; the certified limit lies just before it passes five percent.",
    )


def looking_ahead(found: Numbers) -> str:
    """Draw the gaps between consecutive models."""
    panel = Panel(
        (1, 12),
        (1e-9, 1.0),
        "retraining",
        "distance to the last model",
        "People who look ahead let retraining settle sooner",
        log_y=True,
        width=WIDE,
    )
    for gaps, colour in zip(found.values(), (BLIND, SERIES[2], STRATEGIC), strict=True):
        places = [(k + 1, gap) for k, gap in enumerate(gaps)]
        panel.line(places, colour)
        panel.dots(places, colour, size=2.6)
    for k, (name, colour) in enumerate(zip(found, (BLIND, SERIES[2], STRATEGIC), strict=True)):
        panel.say(7.6, 0.25 / 8**k, name, colour)
    return picture(
        [panel],
        "Three falling lines on a logarithmic axis: consecutive models come together faster the "
        "more people look ahead.",
    )


def together(found: Numbers) -> str:
    """Draw the loss over the budget, alone and together."""
    panel = Panel(
        (0.0, 2.5),
        (0.0, 2.5),
        "budget of each person (distance in pixels of 0 to 1)",
        "loss of the query",
        "A 3 that wants to be read as an 8",
        width=WIDE,
    )
    for name, colour in (("alone", BLIND), ("together", STRATEGIC)):
        places = list(zip(found["budget"], found[name], strict=True))
        panel.line(places, colour)
        granted = [read == "8" for read in found[f"{name} reads"]]
        panel.dots([p for p, yes in zip(places, granted, strict=True) if yes], colour, size=4)
        panel.dots(
            [p for p, yes in zip(places, granted, strict=True) if not yes],
            colour,
            hollow=True,
            size=4,
        )
        panel.say(2.06, places[-1][1] - 0.02, name, colour)
    panel.say(0.08, 0.12, "full circles: read as an 8", QUIET)
    return picture(
        [panel],
        "Loss over the budget. Helped by the others, whose moves change the next model, the query "
        "is granted at a budget of 0.5; alone it takes 1.25.",
    )
