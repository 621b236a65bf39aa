"""The grammar of relations: sentences to rules.

``a <= b``, ``0.5 * a + 2 * b <= c + 10``, ``if a == v then b >= u``. A column with blanks or
signs in its name may stand in backticks, a category in quotes. Python's own parser reads the
sums; nothing is ever executed.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from countermove.data.parsing import is_number
from countermove.data.relations._rules import (
    KEYWORDS,
    SENSES,
    ConditionalRow,
    LevelRow,
    LinearRow,
    Rule,
    Sense,
)
from countermove.errors import nearest, shown

if TYPE_CHECKING:
    from countermove.data.schema import Feature

_QUOTED = re.compile(r"`(?:[^`]|``)+`|'(?:[^']|'')*'|\"[^\"]*\"")
_SENSE = re.compile(r"(<=|>=|==|!=|≤|≥|<|>|=)")
_KEYWORD = re.compile(r"\b(if|then)\b", re.IGNORECASE)
_SPELLED = {"≤": "<=", "≥": ">="}
_REMEDY = {
    "<": "write <= (a - 1 for whole numbers)",
    ">": "write >= (a + 1 for whole numbers)",
    "=": "write ==",
    "!=": "say which value it has, with ==",
}


class GrammarError(ValueError):
    """A sentence that is none of the grammar's."""


class _Sentence:
    """A text whose columns and quoted words are replaced by plain names: ``__0__``, ``__1__``."""

    def __init__(self, text: str, features: Sequence[Feature]) -> None:
        self.features = {feature.name: feature for feature in features}
        self.written: dict[str, str] = {}
        self.columns: dict[str, Feature] = {}
        self.words: dict[str, str] = {}
        # Words that read as numbers or keywords are columns in backticks only.
        names = [n for n in self.features if not is_number(n) and n.lower() not in KEYWORDS]
        plain = "|".join(map(re.escape, sorted(names, key=len, reverse=True))) or r"(?!)"
        bound = rf"(?:(?<!\w)|(?!\w))(?:{plain})(?:(?!\w)|(?<!\w))"
        self.text = re.sub(f"{_QUOTED.pattern}|{bound}", self._named, text)

    def _named(self, found: re.Match[str]) -> str:
        name, text = f"__{len(self.written)}__", found[0]
        self.written[name] = text
        mark, inside = text[0], text[1:-1]
        if mark in "'\"" and text not in self.features:
            self.words[name] = inside if mark == '"' else inside.replace("''", "'")
            return name
        column = inside.replace("``", "`") if mark == "`" else text
        if column not in self.features:
            raise GrammarError(
                f"names {column!r}, which is no feature; {nearest(column, self.features)}"
            )
        self.columns[name] = self.features[column]
        return name

    def as_written(self, text: str) -> str:
        """Return a part of the sentence as it was written."""
        return re.sub(r"__\d+__", lambda found: self.written[found[0]], text).strip()


def parse_rule(text: str, features: Sequence[Feature]) -> Rule:
    """Return the rule a sentence says about some features.

    Raises
    ------
    GrammarError
        If it is no sentence of the grammar, or names what the features do not have.
    """
    if not text.strip():
        raise GrammarError("is empty")
    sentence = _Sentence(text, features)
    parts = _KEYWORD.split(sentence.text)
    if len(parts) == 1 or parts[0].strip() or parts[1].lower() != "if":
        return _comparison(sentence, sentence.text)
    if [word.lower() for word in parts[3::2]] != ["then"]:
        many = "no" if len(parts) == 3 else "more than one"
        raise GrammarError(f"has {many} `then`; write `if a == v then b <= c`")
    premise = _comparison(sentence, parts[2])
    if len(premise.columns) != 1 or premise.sense != "==":
        raise GrammarError("has a condition other than one column == one value")
    if isinstance(premise, LinearRow) and premise.terms[0][1] != 1:
        weight = premise.terms[0][1]
        premise = LinearRow.of({premise.columns[0]: 1.0}, "==", premise.bound / weight)
    then = _comparison(sentence, parts[4])
    if set(then.columns) == set(premise.columns):
        raise GrammarError("concludes about the column of its own condition only")
    return ConditionalRow(premise, then)


def _comparison(sentence: _Sentence, text: str) -> LinearRow | LevelRow:
    """Return what one comparison says."""
    sides = _SENSE.split(text)
    signs = [_SPELLED.get(sign, sign) for sign in sides[1::2]]
    if not all(side.strip() for side in sides[::2]):
        raise GrammarError("has an empty side")
    for sign in signs:
        if sign in _REMEDY:
            raise GrammarError(f"compares with `{sign}`: {_REMEDY[sign]}")
    if len(signs) != 1:
        many = f"{len(signs)} comparisons" if signs else "no comparison"
        written = sentence.as_written(text)
        raise GrammarError(f"has {many} in {written!r}; expected one of {', '.join(SENSES)}")
    sense = cast(Sense, signs[0])
    level = _level(sentence, sides[0].strip(), sense, sides[2].strip())
    if level is not None:
        return level
    (weights, constant), (right, bound) = (_sum(sentence, side) for side in sides[::2])
    for name, weight in right.items():
        weights[name] = weights.get(name, 0.0) - weight
    row = LinearRow.of(weights, sense, bound - constant)
    if not row.terms:
        raise GrammarError("says nothing about any column")
    return row


def _level(sentence: _Sentence, left: str, sense: Sense, right: str) -> LevelRow | None:
    """Return the comparison of a column with one of its categories; None if it is none."""
    feature = sentence.columns.get(left)
    if feature is None or not feature.categories:
        return None
    value = sentence.words.get(right, sentence.as_written(right))
    if value in feature.categories:
        if sense != "==" and feature.kind != "ordered":
            problem = f"compares {feature.name!r} by {sense}, but its categories have no order"
            raise GrammarError(f"{problem}: use ==")
        return LevelRow(feature.name, sense, value, feature.categories)
    if feature.kind == "binary":
        return None
    raise GrammarError(
        f"compares {feature.name!r} with {value!r}, none of its categories; "
        f"{nearest(value, feature.categories)}"
    )


def _sum(sentence: _Sentence, text: str) -> tuple[dict[str, float], float]:
    """Return the weights and the constant of ``0.5 * a - b + 10``."""
    try:
        tree = ast.parse(text.strip(), mode="eval").body
        weights, constant = _terms(sentence, tree)
    except OverflowError as error:
        raise GrammarError("holds a number that is too large") from error
    except (SyntaxError, RecursionError, MemoryError) as error:
        raise GrammarError(f"cannot be read: {sentence.as_written(text)!r} is no sum") from error
    if not all(math.isfinite(number) for number in (*weights.values(), constant)):
        raise GrammarError("holds a number that is too large")
    return weights, constant


def _terms(sentence: _Sentence, node: ast.expr) -> tuple[dict[str, float], float]:
    """Return the weights and the constant of a part of a sum."""
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        return {}, float(cast(float, node.value))
    if isinstance(node, ast.Name):
        return {_numeric(sentence, node.id): 1.0}, 0.0
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
        sign = -1.0 if isinstance(node.op, ast.USub) else 1.0
        return _added(({}, 0.0), _terms(sentence, node.operand), sign)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub | ast.Mult):
        left, right = _terms(sentence, node.left), _terms(sentence, node.right)
        if not isinstance(node.op, ast.Mult):
            return _added(left, right, -1.0 if isinstance(node.op, ast.Sub) else 1.0)
        if left[0] and right[0]:
            one, other = (", ".join(side[0]) for side in (left, right))
            raise GrammarError(f"multiplies {one!r} by {other!r}; only numbers are weights")
        factor, rest = (right[1], left) if left[0] else (left[1], right)
        return _added(({}, 0.0), rest, factor)
    raise SyntaxError


def _added(
    one: tuple[dict[str, float], float], other: tuple[dict[str, float], float], factor: float
) -> tuple[dict[str, float], float]:
    """Return one sum and a multiple of another."""
    weights = dict(one[0])
    for name, weight in other[0].items():
        weights[name] = weights.get(name, 0.0) + factor * weight
    return weights, one[1] + factor * other[1]


def _numeric(sentence: _Sentence, name: str) -> str:
    """Return the column of a name that is a number; refuse other words with the nearest one."""
    if name in sentence.words:
        raise GrammarError(f"holds the text {sentence.words[name]!r} where a column belongs")
    if name not in sentence.columns:
        raise GrammarError(
            f"names {name!r}, which is no feature; {nearest(name, sentence.features)}"
        )
    feature = sentence.columns[name]
    if feature.categorical:
        listed = shown(map(repr, feature.categories), cap=4)
        raise GrammarError(
            f"adds {feature.name!r}, whose values are categories; compare it with one of {listed}"
        )
    return feature.name
