"""The words of a schema: read, written back, refused by name, and no part of a model's identity."""

from __future__ import annotations

import copy

import pytest

from countermove.data.schema import Schema
from countermove.errors import SchemaError

PLAIN = {
    "label": {"column": "outcome", "favourable": 1},
    "features": {
        "bill": {"kind": "numeric", "unit": "EUR", "change": "both", "min": 0},
        "late": {"kind": "integer", "unit": "months", "change": "down", "min": 0},
        "phone": {"kind": "binary", "change": "up"},
        "home": {"kind": "onehot", "change": "both", "categories": ["rented", "owned"]},
        "age": {"kind": "integer", "change": "immutable"},
    },
    "path": {
        "overdue": {"step": "month", "window": ["m1", "m2"], "columns": {"late": "count"}},
    },
}
WORDS = {
    "bill": {
        "name": "your bill",
        "verb": {"up": "run up … of bills", "down": "pay down to …"},
        "horizon": "A bill leaves the window after six months.",
        "causal": True,
    },
    "late": {"verb": "have {value} late", "causal": "no"},
    "phone": {"verb": "register a phone", "causal": "unknown"},
    "home": {"verb": "move to a home that is …"},
    "age": {"name": "your age"},
}


def schema_with(words, paths=None):
    said = copy.deepcopy(PLAIN)
    for name, entry in words.items():
        said["features"][name].update(entry)
    for name, entry in (paths or {}).items():
        said["path"][name].update(entry)
    return Schema.from_mapping("bank", said)


def test_words_are_read_and_written_back():
    schema = schema_with(WORDS, {"overdue": {"verb": "pay on time for …"}})
    bill = schema.feature("bill")
    assert bill.wording.name == "your bill"
    assert bill.wording.raising == "run up {value} of bills"
    assert bill.wording.lowering == "pay down to {value}"
    assert [schema.feature(name).causal for name in ("bill", "late", "phone", "age")] == [
        "yes", "no", "unknown", None,
    ]  # fmt: skip
    assert schema.feature("late").wording.raising == ""
    again = Schema.from_mapping("bank", schema.to_mapping())
    assert again == schema
    assert again.paths[0].verb == "pay on time for {value}"


def test_words_do_not_make_another_model_of_it():
    """A stored model names the digest of its schema: words and causes must not change it."""
    plain, said = schema_with({}), schema_with(WORDS, {"overdue": {"verb": "wait …"}})
    assert said.digest() == plain.digest()
    assert said.relations_digest() == plain.relations_digest() != ""
    assert schema_with({"bill": {"unit": "USD"}}).digest() != plain.digest()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"bill": {"verb": "pay down your bill"}}, r"features\.bill\.verb: .*no place for the val"),
        ({"bill": {"verb": "pay … of …"}}, r"features\.bill\.verb: .*more than one place"),
        ({"bill": {"verb": "pay {amount} of …"}}, r"features\.bill\.verb: .*braces"),
        ({"bill": {"verb": {"upp": "pay …"}}}, r"features\.bill\.verb: unknown key 'upp'; did you"),
        ({"bill": {"verb": {"up": "pay"}}}, r"features\.bill\.verb\.up: .*no place"),
        ({"bill": {"verb": {"up": ["pay …"]}}}, r"features\.bill\.verb\.up: must be text"),
        ({"bill": {"name": {"en": "bill"}}}, r"features\.bill\.name: must be text"),
        ({"bill": {"names": "bill"}}, r"features\.bill: unknown key 'names'; did you mean 'name'"),
        ({"bill": {"causal": "maybe"}}, r"features\.bill\.causal: .*known: no, unknown, yes"),
        (
            {"late": {"verb": {"up": "be late … times"}}},
            r"features\.late\.verb\.up: .*only go down",
        ),
        ({"age": {"verb": "grow to …"}}, r"features\.age\.verb: .*nobody can change"),
        ({"home": {"verb": {"up": "move to …"}}}, r"features\.home\.verb: .*have no order"),
        ({"bill": {"name": "x"}, "late": {"name": "x"}}, r"features\.late\.name: .*of 'bill' too"),
    ],
)
def test_words_that_cannot_be_used_are_refused_by_their_key(words, said):
    with pytest.raises(SchemaError, match=said):
        schema_with(words)


def test_the_verb_of_a_path_has_a_place_for_the_time():
    with pytest.raises(SchemaError, match=r"path\.overdue\.verb: .*no place for the value"):
        schema_with({}, {"overdue": {"verb": "wait"}})
