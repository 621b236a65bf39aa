"""Searches show their phases on a terminal, and find the same with or without somebody watching."""

from __future__ import annotations

import os
import pty
import re
import sys
import threading
import time
from contextlib import suppress
from dataclasses import fields

import numba
import numpy as np
import pytest
import torch
from sklearn.ensemble import GradientBoostingClassifier

from countermove import ActionSet, StrategicClassifier, adopt, calibrate_pare, recommend
from countermove.execution import in_turn, phase, pieces, search_bar, step_bar
from countermove.recourse import Settings, best_reachable
from countermove.response.compilation import over_rows
from countermove.scores import LinearScore, MLPScore

D = 4
BOX = {"lower": [-0.6] * D, "upper": [0.6] * D}
ACTIONS = ActionSet(**BOX, immutable=[3], integer=[2])
FEW = Settings(starts=2, steps=40, calls=150)
LINE = re.compile(r"([a-z ]+?) +(\d+)/(\d+) +\S+ +(\S:\S\S:\S\S)")


class Terminal:
    """A pseudo-terminal that is standard error meanwhile, and what was drawn on it."""

    drawn = ""

    def __enter__(self) -> Terminal:
        self._ours, theirs = pty.openpty()
        self._file, self._before, self._bytes = os.fdopen(theirs, "w"), sys.stderr, b""
        self._reader = threading.Thread(target=self._read)
        self._reader.start()
        sys.stderr = self._file
        return self

    def _read(self) -> None:
        with suppress(OSError):  # the other end is closed
            while piece := os.read(self._ours, 4096):
                self._bytes += piece

    def __exit__(self, *error: object) -> None:
        sys.stderr = self._before
        self._file.close()
        self._reader.join(10.0)
        os.close(self._ours)
        self.drawn = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", self._bytes.decode())

    @property
    def erased(self) -> bool:
        """Whether the last thing done was to erase a line."""
        return self._bytes.rstrip().endswith((b"\x1b[2K", b"\x1b[?25h"))

    @property
    def lines(self) -> list[tuple[str, int, int, str]]:
        """Phase, people so far, all people and the time left of every line, as they were drawn."""
        found = LINE.findall(self.drawn)
        return [(what.strip(), int(m), int(n), left) for what, m, n, left in found]


@pytest.fixture
def terminal(monkeypatch):
    for name, value in {"TERM": "xterm", "COLUMNS": "120", "CI": ""}.items():
        monkeypatch.setenv(name, value)
    return Terminal()


def people(n: int = 160) -> np.ndarray:
    rows = np.random.default_rng(3).normal(size=(n, D))
    rows[:, 2] = np.round(rows[:, 2])
    return rows


def affine():
    return LinearScore(D, torch.Generator().manual_seed(0))


def network():
    score = MLPScore(D, (8, 8), "tanh", dropout=0.0, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        for weight in (*score.weights, score.weight):
            weight.mul_(3.0)
    return score


def trees():
    X = people(400)
    y = X[:, 0] + X[:, 1] * X[:, 2] > 0.3
    return adopt(GradientBoostingClassifier(n_estimators=15).fit(X, y), background=X)


def black_box(seconds: float = 0.0, calls_before_it_fails: int | None = None):
    left = [calls_before_it_fails]

    def judge(X: np.ndarray) -> np.ndarray:
        time.sleep(seconds)
        if left[0] is not None:
            left[0] -= 1
            if left[0] < 0:
                raise RuntimeError("the model went away")
        return 1.0 / (1.0 + np.exp(1.5 - X[:, 0] - np.sin(2.0 * X[:, 1])))

    return adopt(judge, background=people())


def same(one, other) -> bool:
    """Return whether two results are the same to the last bit."""
    for part in fields(one):
        a, b = getattr(one, part.name), getattr(other, part.name)
        if part.name == "alternatives":
            assert all(same(*pair) for pair in zip(a, b, strict=True))
        elif isinstance(a, np.ndarray):
            assert (a.dtype, a.tobytes()) == (b.dtype, b.tobytes()), part.name
        else:
            assert a == b, part.name
    return True


@pytest.mark.parametrize("model", [affine, network, trees, black_box])
def test_answers_are_the_same_to_the_last_bit(model, terminal):
    judge, X = model(), people()
    asked = {"actions": ACTIONS, "settings": FEW, "threshold": 0.6}
    wishes = {"margin": 0.02, "ceiling": 0.8, "digits": 2, "options": 2}
    plain, given = recommend(judge, X, **asked), recommend(judge, X, **asked, **wishes)
    reached = best_reachable(judge, X, actions=ACTIONS)
    promise = calibrate_pare(judge, X, actions=ACTIONS)
    assert {"FOUND", "NOT_NEEDED"} < set(plain.status)
    with terminal:
        assert same(plain, recommend(judge, X, **asked, verbose=1))
        assert same(given, recommend(judge, X, **asked, **wishes, verbose=1))
        assert same(reached, best_reachable(judge, X, actions=ACTIONS, verbose=1))
        assert promise == calibrate_pare(judge, X, actions=ACTIONS, verbose=1)
    refused = int((plain.status != "NOT_NEEDED").sum())
    for line in (rf"cheapest actions +0/{refused}", r"highest reachable scores +0/160"):
        assert re.search(line, terminal.drawn)


def test_every_wish_has_its_phase_and_changes_nothing(terminal):
    X = people()
    luck = np.random.default_rng(0).normal(size=len(X))
    rule = StrategicClassifier(response="none").fit(X, X[:, 0] + X[:, 1] + luck > 0.2)
    wishes = {"confidence": 0.9, "digits": 2, "options": 2, "not_causal": [1]}
    asked = {"actions": ActionSet(immutable=[3]), "causal_tolerance": 2.0} | wishes
    quiet = recommend(rule, X, **asked)
    with terminal:
        assert same(quiet, recommend(rule, X, **asked, verbose=1))
    phases = {what for what, *_ in terminal.lines}
    assert phases >= {"cheapest actions", "actions that outlast a refit", "round amounts"}
    assert phases >= {"actions on causes alone", "further options"}


def test_a_terminal_sees_the_phase_the_count_and_the_time_left(terminal):
    model = black_box(seconds=0.05)
    asked = {"actions": ACTIONS, "settings": Settings(calls=500)}
    with terminal:
        recommend(model, people(40), **asked, threshold=0.7, verbose=1)
        best_reachable(model, people(40), **asked, verbose=1)
    for what in ("cheapest actions", "highest reachable scores"):
        seen = [(m, left) for said, m, _, left in terminal.lines if said == what]
        assert [m for m, _ in seen] == sorted(m for m, _ in seen)
        assert len({m for m, left in seen if re.fullmatch(r"0:00:\d\d", left)}) > 3


def test_the_bar_vanishes(terminal):
    with terminal:
        recommend(affine(), people(), actions=ACTIONS, threshold=0.6, verbose=1)
    assert "cheapest actions" in terminal.drawn
    assert terminal.erased


def test_nothing_is_said_where_nobody_watches(capfd):
    recommend(affine(), people(), actions=ACTIONS, verbose=1)
    calibrate_pare(network(), people(), actions=ACTIONS, verbose=1)
    assert capfd.readouterr() == ("", "")


def test_nothing_is_said_unless_asked(terminal):
    with terminal:
        recommend(affine(), people(), actions=ACTIONS)
        calibrate_pare(network(), people(), actions=ACTIONS)
    assert terminal.drawn == ""


def test_a_search_that_fails_takes_its_bar_along(terminal):
    items = [1, 2]
    with terminal, pytest.raises(RuntimeError, match="went away"):
        recommend(black_box(calls_before_it_fails=6), people(), actions=ACTIONS, verbose=1)
    assert "cheapest actions" in terminal.drawn
    assert terminal.erased
    assert in_turn(items) is items  # nobody counts any more


def test_the_bar_of_a_node_makes_room(terminal):
    with terminal, step_bar("own.advise, 2 of 3", 0.0, 60.0):
        recommend(black_box(0.02), people(20), actions=ACTIONS, settings=FEW, verbose=1)
    assert 0 <= terminal.drawn.rfind("own.advise, 2 of 3") < terminal.drawn.find("cheapest actions")


def test_a_search_inside_another_is_shown_in_its_bar(terminal):
    with terminal, search_bar(1), phase("all of it", 10):
        for _ in in_turn(range(2)):
            with search_bar(1), phase("a part", 5):
                for _ in in_turn(range(5)):
                    time.sleep(0.15)
    seen = {(what, m) for what, m, *_ in terminal.lines}
    assert len(seen & {("all of it", m) for m in range(1, 10)}) > 4
    assert ("a part", 4) in seen  # it has a line once it takes longer


def test_loops_inside_loops_move_the_bar_within_them(terminal):
    done = []
    with terminal, search_bar(1), phase("people", 30):
        for turn in in_turn(range(3)):
            done += [(turn, row) for rows in pieces(10) for row in range(rows.start, rows.stop)]
            for _ in in_turn("again"):  # A second loop over the same people moves nothing.
                if turn == 1:
                    time.sleep(0.1)
    assert done == [(turn, row) for turn in range(3) for row in range(10)]
    seen = {m for _, m, *_ in terminal.lines}
    assert 20 in seen
    assert not seen & set(range(21, 30))


def test_rows_are_done_at_once_where_nobody_counts(terminal):
    assert list(pieces(7)) == [slice(0, 7)]
    with terminal, search_bar(1), phase("people", 7):
        assert len(list(pieces(7))) > 1


def test_rows_on_several_threads_are_counted(terminal, monkeypatch):
    monkeypatch.setattr(numba.config, "NUMBA_NUM_THREADS", 2)
    done = np.zeros(16_000, np.int64)

    def work(rows: slice) -> None:
        time.sleep(0.1)
        done[rows] += 1

    with terminal, search_bar(1), phase("people", 16_000):
        over_rows(16_000, work)
    assert (done == 1).all()
    assert len({m for _, m, *_ in terminal.lines}) > 3
