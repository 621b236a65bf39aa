"""The grammar of relations: sentences to rules.

``a <= b``, ``0.5 * a + 2 * b <= c + 10``, ``if a == v then b >= u``. A column with blanks or
signs in its name may stand in backticks, a category in quotes.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NoReturn, cast

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

_OPERATOR = re.compile(r"<=|>=|==|!=|≤|≥|[<>=+\-*/(),]")
_NUMBER = re.compile(r"(?:\d[\d_]*(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?(?![\w.])")
_QUOTED = re.compile(r"`(?:[^`]|``)+`|'(?:[^']|'')*'|\"[^\"]*\"")
_WORD = re.compile(r"[^\s<>=+*/(),`'\"]+|.", re.DOTALL)
_SPELLED = {"≤": "<=", "≥": ">="}
_REMEDY = {
    "<": "write <= (a - 1 for whole numbers)",
    ">": "write >= (a + 1 for whole numbers)",
    "=": "write ==",
    "!=": "say which value it has, with ==",
}


class GrammarError(ValueError):
    """A sentence that is none of the grammar's."""


@dataclass(frozen=True)
class _Token:
    kind: Literal["number", "column", "quoted", "operator", "word"]
    text: str
    start: int
    end: int

    def is_keyword(self, word: str) -> bool:
        """Return whether this is ``if`` or ``then`` (not a column or text of that name)."""
        return self.kind == "word" and self.text.lower() == word


class _Sentence:
    """A text with the features it may speak of."""

    def __init__(self, text: str, features: Sequence[Feature]) -> None:
        self.text = text
        self.features = {feature.name: feature for feature in features}
        # Words that read as numbers or keywords are columns in backticks only.
        names = [n for n in self.features if not is_number(n) and n.lower() not in KEYWORDS]
        self._longest_first = sorted(names, key=len, reverse=True)
        self.tokens = self._tokens()
        if not self.tokens:
            raise GrammarError("is empty")

    def _tokens(self) -> list[_Token]:
        tokens, place = [], 0
        while place < len(self.text):
            if self.text[place].isspace():
                place += 1
                continue
            token = self._token_at(place)
            tokens.append(token)
            place = token.end
        return tokens

    def _token_at(self, place: int) -> _Token:
        for name in self._longest_first:
            if self.text.startswith(name, place):
                end = place + len(name)
                follows = self.text[end : end + 1]
                if not (_is_wordlike(name[-1]) and _is_wordlike(follows)):
                    return _Token("column", name, place, end)
        if found := _QUOTED.match(self.text, place):
            mark, inside = found[0][0], found[0][1:-1]
            inside = inside if mark == '"' else inside.replace(mark * 2, mark)
            return _Token("column" if mark == "`" else "quoted", inside, place, found.end())
        if found := _NUMBER.match(self.text, place):
            return _Token("number", found[0], place, found.end())
        if found := _OPERATOR.match(self.text, place):
            sign = _SPELLED.get(found[0], found[0])
            return _Token("operator", sign, place, found.end())
        found = cast(re.Match[str], _WORD.match(self.text, place))
        return _Token("word", found[0], place, found.end())

    def feature(self, token: _Token) -> Feature:
        """Return the feature a token names; refuse another word with the nearest one."""
        if token.kind == "column" and token.text in self.features:
            return self.features[token.text]
        if token.kind == "quoted":
            raise GrammarError(f"holds the text {token.text!r} where a column belongs")
        raise GrammarError(
            f"names {token.text!r}, which is no feature; {nearest(token.text, self.features)}"
        )

    def slice(self, tokens: Sequence[_Token]) -> str:
        """Return the text of some tokens in a row as it was written."""
        return self.text[tokens[0].start : tokens[-1].end]


def _is_wordlike(character: str) -> bool:
    return character.isalnum() or character == "_"


def parse_rule(text: str, features: Sequence[Feature]) -> Rule:
    """Return the rule a sentence says about some features.

    Raises
    ------
    GrammarError
        If it is no sentence of the grammar, or names what the features do not have.
    """
    sentence = _Sentence(text, features)
    if not sentence.tokens[0].is_keyword("if"):
        return _comparison(sentence, sentence.tokens)
    places = [i for i, token in enumerate(sentence.tokens) if token.is_keyword("then")]
    if len(places) != 1:
        many = "no" if not places else "more than one"
        raise GrammarError(f"has {many} `then`; write `if a == v then b <= c`")
    premise = _comparison(sentence, sentence.tokens[1 : places[0]])
    if len(premise.columns) != 1 or premise.sense != "==":
        raise GrammarError("has a condition other than one column == one value")
    if isinstance(premise, LinearRow) and premise.terms[0][1] != 1:
        weight = premise.terms[0][1]
        premise = LinearRow.of({premise.columns[0]: 1.0}, "==", premise.bound / weight)
    then = _comparison(sentence, sentence.tokens[places[0] + 1 :])
    if set(then.columns) == set(premise.columns):
        raise GrammarError("concludes about the column of its own condition only")
    return ConditionalRow(premise, then)


def _comparison(sentence: _Sentence, tokens: Sequence[_Token]) -> LinearRow | LevelRow:
    """Return what one comparison says."""
    if not tokens:
        raise GrammarError("has an empty side")
    level = _level(sentence, tokens)
    if level is not None:
        return level
    for token in tokens:
        if token.kind == "operator" and token.text in _REMEDY:
            raise GrammarError(f"compares with `{token.text}`: {_REMEDY[token.text]}")
    places = [i for i, t in enumerate(tokens) if t.kind == "operator" and t.text in SENSES]
    if len(places) != 1:
        many = "no comparison" if not places else f"{len(places)} comparisons"
        raise GrammarError(f"has {many} in {sentence.slice(tokens)!r}; expected one of <=, >=, ==")
    left, constant = _sum(sentence, tokens[: places[0]])
    right, bound = _sum(sentence, tokens[places[0] + 1 :])
    weights = dict(left)
    for name, weight in right.items():
        weights[name] = weights.get(name, 0.0) - weight
    row = LinearRow.of(weights, cast(Sense, tokens[places[0]].text), bound - constant)
    if not row.terms:
        raise GrammarError("says nothing about any column")
    return row


def _level(sentence: _Sentence, tokens: Sequence[_Token]) -> LevelRow | None:
    """Return the comparison of a column with one of its categories; None if it is none."""
    if len(tokens) < 3 or tokens[0].kind != "column":
        return None
    feature = sentence.feature(tokens[0])
    sense = tokens[1].text
    if not feature.categories or tokens[1].kind != "operator" or sense not in SENSES:
        return None
    rest = tokens[2:]
    value = rest[0].text if len(rest) == 1 else sentence.slice(rest)
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


def _sum(sentence: _Sentence, tokens: Sequence[_Token]) -> tuple[dict[str, float], float]:
    """Return the weights and the constant of ``0.5 * a - b + 10``."""
    if not tokens:
        raise GrammarError("has an empty side")
    weights: dict[str, float] = {}
    constant, place, sign = 0.0, 0, 1.0
    while place < len(tokens):
        signed = tokens[place].kind == "operator" and tokens[place].text in "+-"
        if signed:
            sign = -1.0 if tokens[place].text == "-" else 1.0
            place += 1
        elif place > 0:
            _unexpected(sentence, tokens[place])
        factor, name, place = _term(sentence, tokens, place)
        if name is None:
            constant += sign * factor
        else:
            weights[name] = weights.get(name, 0.0) + sign * factor
    if not all(math.isfinite(number) for number in (*weights.values(), constant)):
        raise GrammarError("holds a number that is too large")
    return weights, constant


def _term(
    sentence: _Sentence, tokens: Sequence[_Token], place: int
) -> tuple[float, str | None, int]:
    """Return factor, column (None for a number alone) and the place after one term."""
    factor, name = 1.0, None
    while True:
        if place >= len(tokens):
            raise GrammarError(f"ends after {tokens[-1].text!r}")
        token = tokens[place]
        if token.kind == "number":
            factor *= float(token.text)
        elif token.kind == "operator":
            _unexpected(sentence, token)
        elif name is None:
            name = _numeric(sentence.feature(token))
        else:
            raise GrammarError(f"multiplies {name!r} by {token.text!r}; only numbers are weights")
        place += 1
        if place >= len(tokens) or tokens[place].text != "*" or tokens[place].kind != "operator":
            return factor, name, place
        place += 1


def _numeric(feature: Feature) -> str:
    """Return the name of a feature that is a number; refuse a category."""
    if feature.categorical:
        listed = shown(map(repr, feature.categories), cap=4)
        raise GrammarError(
            f"adds {feature.name!r}, whose values are categories; compare it with one of {listed}"
        )
    return feature.name


def _unexpected(sentence: _Sentence, token: _Token) -> NoReturn:
    before = sentence.text[: token.start].rstrip()[-20:]
    raise GrammarError(f"cannot be read from {token.text!r} on (after {before!r})")
