"""WordNet's own files, read: which words of English oppose each other.

Princeton's database is text: an index of words per part of speech, and synsets
found by byte offset. Only nouns and adjectives are read.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Self

from countermove.errors import DataError, MissingPartError

PartOfSpeech = Literal["noun", "adj"]
PARTS_OF_SPEECH: tuple[PartOfSpeech, ...] = ("noun", "adj")
PLACES = (Path("/usr/share/wordnet"), Path("/usr/local/share/wordnet"))
"""Where the Debian package ``wordnet-base`` and its like put the files."""

FILES = tuple(f"{kind}.{pos}" for pos in PARTS_OF_SPEECH for kind in ("index", "data"))
COUNTS, EXCEPTIONS = "cntlist.rev", "noun.exc"

_MARKER = re.compile(r"\((?:a|p|ip)\)$")
_SENSE_TYPES = {"1": "noun", "2": "verb", "3": "adj", "4": "adv", "5": "adj"}
"""Part of speech by the type in a sense key; 5 are the satellite adjectives."""

_PLURALS = (
    ("ches", "ch"),
    ("shes", "sh"),
    ("ses", "s"),
    ("xes", "x"),
    ("zes", "z"),
    ("ies", "y"),
    ("men", "man"),
    ("s", ""),
)


@dataclass(frozen=True)
class WordNetPointer:
    """A relation to another synset; ``source`` and ``target`` number words from 1, 0 is all."""

    symbol: str
    offset: int
    source: int
    target: int


@dataclass(frozen=True)
class Synset:
    """Words of one meaning and what the meaning is related to."""

    words: tuple[str, ...]
    pointers: tuple[WordNetPointer, ...]

    def named(self, number: int) -> tuple[str, ...]:
        """Return the word a pointer refers to, all of them for 0."""
        return self.words if number == 0 else (self.words[number - 1],)


class WordNet:
    """Antonyms of English nouns and adjectives.

    Parameters
    ----------
    index
        Byte offsets of the synsets of every word, most frequent sense first, per part of speech.
    data
        The content of the data files.
    counts
        How often a word was tagged with a part of speech, by ``(word, part of speech)``.
    exceptions
        Irregular plurals.
    """

    def __init__(
        self,
        index: Mapping[PartOfSpeech, Mapping[str, tuple[int, ...]]],
        data: Mapping[PartOfSpeech, bytes],
        counts: Mapping[tuple[str, str], int],
        exceptions: Mapping[str, str],
    ) -> None:
        self._index, self._data = index, data
        self._counts, self._exceptions = counts, exceptions

    @classmethod
    def load(cls, folder: Path | str | None = None) -> Self:
        """Read the files of a ``dict`` folder.

        Parameters
        ----------
        folder
            Where ``index.adj`` and its like are; None: what ``WNSEARCHDIR`` names, else
            the places where packages put them.

        Raises
        ------
        MissingPartError
            If there is no such folder; the message says what to install.
        DataError
            If a file is not WordNet's.
        """
        place = find_wordnet(folder)
        try:
            index = {pos: _read_index(place / f"index.{pos}") for pos in PARTS_OF_SPEECH}
            data = {pos: (place / f"data.{pos}").read_bytes() for pos in PARTS_OF_SPEECH}
            counts = _read_counts(place / COUNTS)
            exceptions = _read_exceptions(place / EXCEPTIONS)
        except OSError as error:
            raise DataError(f"WordNet in {place} cannot be read: {error}") from error
        return cls(index, data, counts, exceptions)

    def usual(self, word: str, pos: PartOfSpeech) -> bool:
        """Whether a word is used as this part of speech at least as often as as any other.

        Counts are those of WordNet's tagged texts; a word they lack is of every part
        of speech that lists it.
        """
        own = self._counts.get((word, pos), 0)
        return all(self._counts.get((word, other), 0) <= own for other in _SENSE_TYPES.values())

    def lemma(self, word: str, pos: PartOfSpeech) -> tuple[str, bool] | None:
        """Return the listed form of a lower-case word and whether the word is its plural.

        None if there is none. Compared adjectives ("duller") are not taken apart.
        """
        listed = self._index[pos]
        if word in listed:
            return word, False
        if pos == "adj":
            return None
        if self._exceptions.get(word) in listed:
            return self._exceptions[word], True
        for ending, single in _PLURALS:
            stem = word.removesuffix(ending) + single
            if word.endswith(ending) and stem in listed:
                return stem, True
        return None

    def antonyms(self, lemma: str, pos: PartOfSpeech) -> tuple[str, ...]:
        """Return the antonyms of a listed word, direct before indirect, then by sense.

        Direct antonyms oppose the word itself. Indirect ones oppose another word of
        its meaning or, for a satellite adjective, the adjective its cluster is about
        ("insipid" is a satellite of "tasteless", which opposes "tasty").
        """
        senses = [self._synset(offset, pos) for offset in self._index[pos].get(lemma, ())]
        direct = [word for sense in senses for word in self._direct(sense, lemma, pos)]
        indirect = [word for sense in senses for word in self._indirect(sense, pos)]
        found = dict.fromkeys(word for word in direct + indirect if word.lower() != lemma)
        return tuple(word.replace("_", " ") for word in found)

    def _direct(self, sense: Synset, lemma: str, pos: PartOfSpeech) -> Iterator[str]:
        numbers = [n for n, word in enumerate(sense.words, start=1) if word.lower() == lemma]
        for pointer in sense.pointers:
            if pointer.symbol == "!" and pointer.source in (0, *numbers):
                yield from self._synset(pointer.offset, pos).named(pointer.target)

    def _indirect(self, sense: Synset, pos: PartOfSpeech) -> Iterator[str]:
        heads = [p.offset for p in sense.pointers if p.symbol == "&" and pos == "adj"]
        for similar in (sense, *(self._synset(offset, pos) for offset in heads)):
            for pointer in similar.pointers:
                if pointer.symbol == "!":
                    yield from self._synset(pointer.offset, pos).named(pointer.target)

    def _synset(self, offset: int, pos: PartOfSpeech) -> Synset:
        content = self._data[pos]
        line = content[offset : content.find(b"\n", offset)].decode("utf-8", "replace")
        try:
            return _parsed(line, offset)
        except (ValueError, IndexError) as error:
            raise DataError(
                f"data.{pos} of WordNet has no synset at byte {offset}: index and data are not of "
                "one release; install wordnet-base again"
            ) from error


def find_wordnet(folder: Path | str | None = None) -> Path:
    """Return the folder of WordNet's files; None looks where they usually are."""
    named = os.environ.get("WNSEARCHDIR")
    if folder is not None:
        places: tuple[Path, ...] = (Path(folder),)
    else:
        places = (Path(named), *PLACES) if named else PLACES
    for place in places:
        if all((place / name).is_file() for name in (*FILES, COUNTS, EXCEPTIONS)):
            return place
    raise MissingPartError(
        f"WordNet is not in {' or '.join(map(str, places))}: expected "
        f"{', '.join((*FILES, COUNTS, EXCEPTIONS))} there. `apt-get install wordnet-base` brings "
        "them, or name their folder (paper.experiment.wordnet, or WNSEARCHDIR)"
    )


def _parsed(line: str, offset: int) -> Synset:
    """Read one line of a data file: ``offset file type n (word id)… n (pointer)… | gloss``."""
    cells = line.split(" | ", 1)[0].split()
    if int(cells[0]) != offset:
        raise ValueError(line)
    n_words = int(cells[3], 16)
    after = 4 + 2 * n_words
    words = tuple(_MARKER.sub("", word) for word in cells[4:after:2])
    pointers = []
    for at in range(after + 1, after + 1 + 4 * int(cells[after]), 4):
        symbol, target, _, numbers = cells[at : at + 4]
        pointers.append(
            WordNetPointer(symbol, int(target), int(numbers[:2], 16), int(numbers[2:], 16))
        )
    return Synset(words, tuple(pointers))


def _read_index(path: Path) -> dict[str, tuple[int, ...]]:
    """Read ``word pos n_synsets n_pointers pointers… n_senses n_tagged offsets…`` lines."""
    found: dict[str, tuple[int, ...]] = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        if line.startswith("  ") or not line:  # the licence
            continue
        try:
            cells = line.split()
            n_synsets = int(cells[2])
            found[cells[0]] = tuple(int(offset) for offset in cells[-n_synsets:])
        except (ValueError, IndexError) as error:
            raise DataError(f"{path}, line {number} is not an index of WordNet") from error
    return found


def _read_counts(path: Path) -> dict[tuple[str, str], int]:
    """Sum the ``sense_key sense_number count`` lines per word and part of speech."""
    totals: dict[tuple[str, str], int] = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        try:
            key, _, count = line.split()
            word, _, rest = key.partition("%")
            at = (word, _SENSE_TYPES[rest[:1]])
            totals[at] = totals.get(at, 0) + int(count)
        except (ValueError, KeyError) as error:
            raise DataError(f"{path}, line {number} is not a count of WordNet") from error
    return totals


def _read_exceptions(path: Path) -> dict[str, str]:
    pairs = (line.split() for line in path.read_text(encoding="utf-8").splitlines())
    return {pair[0]: pair[1] for pair in pairs if len(pair) > 1}
