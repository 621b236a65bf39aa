"""Messages stay short however many rows are wrong; the error carries them all."""

from countermove.errors import DataError, nearest, shown


def test_long_lists_are_capped_and_counted():
    assert shown(range(13)).endswith("9 and 3 more")
    assert shown([1, 2]) == "1, 2"


def test_an_error_carries_all_rows():
    assert DataError("wrong", rows=range(1000)).rows == tuple(range(1000))


def test_nearest_name_is_suggested():
    assert nearest("credti", ["credit", "german"]).startswith("did you mean 'credit'?")
    assert nearest("zzz", ["credit"]) == "known: credit"
