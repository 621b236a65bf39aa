"""A few words of WordNet in its own file format, with true byte offsets."""

from __future__ import annotations

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
COUNTS = """\
love%1:12:00:: 1 42
love%2:37:00:: 1 60
dull%2:30:00:: 2 1
dull%3:00:03:: 1 5
insipid%5:00:00:dull:00 1 1
hate%1:12:00:: 1 3
"""


def write_wordnet(folder: Path) -> Path:
    """Write the files and return their folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for pos, letter, synsets in (("adj", "a", ADJECTIVES), ("noun", "n", NOUNS)):
        data, offsets = _data(synsets, letter)
        (folder / f"data.{pos}").write_text(data)
        (folder / f"index.{pos}").write_text(LICENCE + _index(synsets, offsets, letter))
    (folder / "cntlist.rev").write_text(COUNTS)
    (folder / "noun.exc").write_text("children child\n")
    return folder


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
    return f'{head}{related}| what it means | in words; "as said"  \n'


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
