"""A few words of WordNet: as nltk reads them, and in its own file format with true offsets."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

LICENCE = "  1 This software and database is being provided to you, the LICENSEE, by  \n"

# Name: type, words, pointers (symbol, other synset, number of our word, number of theirs).
ADJECTIVES = {
    "dull": ("a", ["dull"], [("!", "lively", 1, 1), ("&", "insipid", 0, 0)]),
    "lively": ("a", ["lively"], [("!", "dull", 1, 1)]),
    "blunt": ("a", ["dull"], [("!", "sharp", 1, 1)]),
    "sharp": ("a", ["sharp"], [("!", "blunt", 1, 1)]),
    "insipid": ("s", ["insipid", "flat"], [("&", "dull", 0, 0)]),
    "large": ("a", ["large", "big(a)"], [("!", "small", 1, 1), ("!", "small", 2, 2)]),
    "small": ("a", ["small", "little"], [("!", "large", 1, 1), ("!", "large", 2, 2)]),
    "drawn": ("a", ["well-drawn"], [("!", "crude", 1, 1)]),
    "crude": ("a", ["half_finished(p)"], [("!", "drawn", 1, 1)]),
    "clever": ("a", ["clever"], []),
    "love": ("a", ["love"], [("!", "crude", 1, 1)]),
}
NOUNS = {
    "victory": ("n", ["victory", "triumph"], [("!", "defeat", 1, 1)]),
    "defeat": ("n", ["defeat"], [("!", "victory", 1, 1)]),
    "woman": ("n", ["woman"], [("!", "man", 1, 1)]),
    "man": ("n", ["man"], [("!", "woman", 1, 1)]),
    "child": ("n", ["child"], [("!", "parent", 1, 1)]),
    "parent": ("n", ["parent"], [("!", "child", 1, 1)]),
    "love": ("n", ["love"], [("!", "hate", 1, 1)]),
    "hate": ("n", ["hate"], [("!", "love", 1, 1)]),
    "it": ("n", ["it"], [("!", "hate", 1, 1)]),
}
COUNTS = {("love", "n"): 42, ("love", "v"): 60, ("hate", "n"): 3, ("insipid", "s"): 1}
PARTS = (("noun", "n", NOUNS), ("verb", "v", {"love": ("v", ["love"], [])}),
         ("adj", "a", ADJECTIVES), ("adv", "r", {}))  # fmt: skip


def write_wordnet(folder: Path) -> Path:
    """Write the files where nltk looks inside a folder, and return it."""
    data_folder, folder = folder, folder / "corpora" / "wordnet"
    folder.mkdir(parents=True, exist_ok=True)
    for pos, letter, synsets in PARTS:
        data, offsets = _data(synsets, letter)
        (folder / f"data.{pos}").write_text(data)
        (folder / f"index.{pos}").write_text(LICENCE + _index(synsets, offsets, letter))
        (folder / f"{pos}.exc").write_text("children child\n" if pos == "noun" else "")
    kinds = {"n": 1, "v": 2, "s": 5}
    heads = {"insipid": "dull:00"}
    keys = {f"{w}%{kinds[p]}:00:00:{heads.get(w, ':')}": n for (w, p), n in COUNTS.items()}
    (folder / "cntlist.rev").write_text("".join(f"{key} 1 {keys[key]}\n" for key in sorted(keys)))
    (folder / "lexnames").write_text("00\tadj.all\t3\n")
    (folder / "index.sense").write_text("")
    return data_folder


class SmallWordNet:
    """The same words as nltk's reader gives them."""

    def morphy(self, word: str, pos: str) -> str | None:
        """Return the listed form of a word."""
        forms = [word]
        if pos == "n":
            rules = (("ies", "y"), ("men", "man"), ("children", "child"), ("s", ""))
            forms += [word.removesuffix(end) + one for end, one in rules if word.endswith(end)]
        return next((form for form in forms if self.synsets(form, pos)), None)

    def synsets(self, word: str, pos: str) -> list[SmallSynset]:
        """Return the meanings that list a word."""
        (synsets,) = (synsets for _, letter, synsets in PARTS if letter == pos)
        found = [SmallSynset(name, synsets) for name in synsets]
        return [each for each in found if word in [one.name() for one in each.lemmas()]]


@dataclass(frozen=True)
class SmallSynset:
    """A meaning."""

    key: str
    synsets: dict

    def lemmas(self) -> list[SmallLemma]:
        """Return its words."""
        return [SmallLemma(self, k) for k in range(len(self.synsets[self.key][1]))]

    def similar_tos(self) -> list[SmallSynset]:
        """Return the adjectives it is near to."""
        pointers = self.synsets[self.key][2]
        return [SmallSynset(other, self.synsets) for symbol, other, *_ in pointers if symbol == "&"]


@dataclass(frozen=True)
class SmallLemma:
    """A word of a meaning."""

    synset: SmallSynset
    place: int

    def name(self) -> str:
        """Return the word without its marker."""
        word = self.synset.synsets[self.synset.key][1][self.place]
        return word.split("(")[0]

    def count(self) -> int:
        """Return how often it was tagged."""
        return COUNTS.get((self.name(), self.synset.synsets[self.synset.key][0]), 0)

    def antonyms(self) -> list[SmallLemma]:
        """Return the words it opposes."""
        return [
            SmallLemma(SmallSynset(other, self.synset.synsets), theirs - 1)
            for symbol, other, ours, theirs in self.synset.synsets[self.synset.key][2]
            if symbol == "!" and ours == self.place + 1
        ]


def _data(synsets, letter: str) -> tuple[str, dict[str, int]]:
    # Offsets are eight digits, so the length of a line does not depend on them.
    drafts = {name: _line(name, synsets, dict.fromkeys(synsets, 0), letter) for name in synsets}
    offsets, at = {}, len(LICENCE)
    for name, draft in drafts.items():
        offsets[name] = at
        at += len(draft)
    return LICENCE + "".join(_line(n, synsets, offsets, letter) for n in synsets), offsets


def _line(name: str, synsets, offsets: dict[str, int], letter: str) -> str:
    kind, words, pointers = synsets[name]
    spelt = " ".join(f"{word} 0" for word in words)
    related = "".join(
        f"{symbol} {offsets[other]:08d} {letter} {ours:02x}{theirs:02x} "
        for symbol, other, ours, theirs in pointers
    )
    head = f"{offsets[name]:08d} 00 {kind} {len(words):02x} {spelt} {len(pointers):03d} "
    return f'{head}{related}| what it means; "as said"  \n'


def _index(synsets, offsets: dict[str, int], letter: str) -> str:
    senses: dict[str, list[int]] = {}
    for name, (_, words, _) in synsets.items():
        for word in words:
            senses.setdefault(word.split("(")[0], []).append(offsets[name])
    lines = []
    for word in sorted(senses):
        at = " ".join(f"{offset:08d}" for offset in senses[word])
        lines.append(f"{word} {letter} {len(senses[word])} 1 ! {len(senses[word])} 1 {at}  \n")
    return "".join(lines)
