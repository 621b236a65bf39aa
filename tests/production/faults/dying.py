"""A process that forks, and each child kills itself on purpose.

Started once by the tests, so that heavy imports are paid for once. Each line of standard
input is a JSON order; each line of output says how the child ended:
``{"killed": bool, "code": int | None}``. What the last child said is in ``dying.log``.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType
from typing import Any

import numpy as np
import pandas as pd
import torch

from countermove.data.standardise import Standardiser
from countermove.errors import CountermoveError
from countermove.production.gates import GateResult
from countermove.production.history import DecisionHistory
from countermove.production.lock import held
from countermove.production.registry import Registry, Signer, recover
from countermove.production.retraining.following import Memory, Night, shifted_score
from countermove.production.retraining.labelled_batch import LabelledBatch
from countermove.production.retraining.ledger import BatchLedger
from countermove.production.retraining.nightly import Followed
from countermove.production.retraining.promotion import (
    decide_on_challenger,
    promote_or_keep,
    record_blocked,
    roll_back,
)
from countermove.production.retraining.reach import ReachModel
from countermove.production.scoring.exploring import KEY_VARIABLE as DRAW_KEY
from countermove.production.scoring.exploring import ExplorationTerms
from countermove.scores.linear import LinearScore
from countermove.scores.storage import PublishedModel

sys.path.append(str(Path(__file__).parents[1]))
FACTS = {"metrics": {"accuracy": {"best": 0.8}}, "data_hash": "d", "certificates": []}
LOG = Path.cwd() / "dying.log"
AUDITED = ("open", "os.", "shutil.", "sqlite3.", "tempfile.")
"""Audit events are raised before Python touches a file, a folder or a database."""
TOUCHING = ("posix", "_io", "sqlite3")
"""Modules whose functions and objects touch them; their return is a step too."""
HARMLESS = {"fspath", "getpid", "stat", "seek", "fileno", "_path_normpath", "cursor", "tell"}
"""Functions of these modules that leave everything as it is."""


class Steps:
    """Counts what a child does to the file system, and kills it at one of them."""

    def __init__(self, kill_at: int | None, kill_at_rename: int | None = None) -> None:
        self.count, self._kill_at = 0, kill_at
        self._renames, self._kill_at_rename = 0, kill_at_rename

    def watch(self, returns: bool) -> None:
        """Begin to count; with the returns too, which slows Python down."""
        sys.addaudithook(self._audited)
        if returns:
            sys.setprofile(self._returned)

    def _step(self) -> None:
        self.count += 1
        if self.count == self._kill_at:
            os.kill(os.getpid(), signal.SIGKILL)

    def _audited(self, event: str, _: tuple[Any, ...]) -> None:
        if event.startswith(AUDITED):
            self._step()
        if event == "os.rename":
            self._renames += 1
            if self._renames == self._kill_at_rename:
                os.kill(os.getpid(), signal.SIGKILL)

    def _returned(self, _: FrameType, event: str, called: Any) -> None:
        if event != "c_return":
            return
        owner = (
            getattr(called, "__module__", None)
            or type(getattr(called, "__self__", None)).__module__
        )
        if owner in TOUCHING and called.__name__ not in HARMLESS:
            self._step()


def model(weight: float = 1.0) -> PublishedModel:
    score = LinearScore(2)
    with torch.no_grad():
        score.weight.copy_(torch.tensor([weight, 2.0]))
    unit = Standardiser(np.zeros(2), np.ones(2), ("a", "b"))
    return PublishedModel(score, unit, "schema")


def now() -> datetime:
    """Tell a time that always goes backwards: nothing may depend on it."""
    return datetime.fromtimestamp(4e9 - time.monotonic(), UTC)


def places(folder: Path) -> tuple[Registry, DecisionHistory]:
    registry = Registry(str(folder / "registry"), clock=now)
    return registry, DecisionHistory(f"sqlite:///{folder / 'history.db'}", "credit")


def promote(folder: Path, passed: bool = True) -> None:
    gate = GateResult("improvement", passed, 0.0, 0.0, "words")
    promote_or_keep(*places(folder), model(float(time.monotonic_ns() % 997)), FACTS, [gate], {})


def keep(folder: Path) -> None:
    promote(folder, passed=False)


def go_back(folder: Path) -> None:
    roll_back(*places(folder))


def block(folder: Path) -> None:
    record_blocked(*places(folder), "nothing new")


def batch(name: str, rows: int) -> LabelledBatch:
    return LabelledBatch(name, pd.DataFrame({"a": range(rows)}))


def use(folder: Path) -> None:
    """Promote a challenger that was made of two batches."""
    facts = {
        name: {"sha256": batch(name, 3).sha256, "rows": 3, "rule": None} for name in ("one", "two")
    }
    given = (model(float(time.monotonic_ns() % 997)), FACTS, [])
    promote_or_keep(*places(folder), *given, {"batches": facts})


def act(folder: Path, name: str) -> None:
    """Do something about a batch as the command does: under the lock, then into the history."""
    registry, history = places(folder)
    with held(folder / ".lock"):
        ledger = BatchLedger(registry)
        if name == "withdraw":
            said = ledger.withdraw("two", [batch("one", 3), batch("two", 3)], "wrong")
        elif name == "supersede":
            said = ledger.supersede("one", [batch("one", 4), batch("two", 3)], "corrected")
        elif name == "restore":
            said = ledger.restore("two", "right after all")
        else:
            said = ledger.confirm("2999-01", [batch("2999-01", 5)], "fiscal year")
        history.note(registry.time(), [said])


def shift(folder: Path) -> None:
    """Shift the champion's threshold, as a night does whose people move farther."""
    registry, history = places(folder)
    champion = registry.champion()
    assert champion is not None
    score, people = shifted_score(champion.model.rule, -0.3), ReachModel(1.4)
    memory = Memory((), (1.0,), {}, {"one": {"people": people.to_json()}}, 0.0)
    night = Night("shift", score, 0.3, people, None, None, None, memory, None, None)
    model = PublishedModel(score, champion.model.standardiser, "schema")
    shown = {"accuracy": {"challenger": {"best": 0.8}}, "people": 10}
    gate = GateResult("reach", True, 1.4, None, "people move 1.4 times as far").to_json()
    promised = {"certificate": None, "certificates": [], "threshold": 0.5, "terms": {}}
    evaluated = {"judgement": shown, "forecast": {}, "gates": [gate]}
    seen = {"batches": champion.facts.get("batches", {}), "drift": {}}
    train = pd.DataFrame({"a": [1.0], "b": [2.0]})
    given = (model, promised, evaluated, seen, train, {}, Followed(night))
    decide_on_challenger(registry, history, *given)


def try_beside(folder: Path) -> None:
    """Score a batch with a challenger beside and with exploration, and keep its advice open."""
    from tiny_champion import DAYS, Office

    os.environ[DRAW_KEY] = "k" * 40
    office = Office(folder)
    tried = {"challenger": "newest", "exploration": ExplorationTerms(0.4)}
    office.score("may", rows=10, **tried, **DAYS)


def open_office(folder: Path) -> None:
    """Prepare what `try_beside` needs: two versions, open advice, people who apply."""
    from tiny_champion import DAYS, PEOPLE, Office, keep, promote

    office = Office(folder)
    promote(office.registry)
    PEOPLE[30:60].to_csv(office.batches / "april.csv", index=False)
    office.score("april", **DAYS)
    keep(office.registry, shift=1.0)
    PEOPLE[:30].to_csv(office.batches / "may.csv", index=False)


def rehearsed(folder: Path) -> None:
    open_office(folder)
    try_beside(folder)


def sign(folder: Path) -> None:
    """Change the key: the old one is still listed."""
    registry = Registry(str(folder / "registry"), signer=Signer((b"n" * 32, b"o" * 32), "accept"))
    registry.sign_all()


def recover_again(folder: Path) -> None:
    registry, history = places(folder)
    history.note(registry.time(), recover(registry))
    history.add_decisions(registry.decisions())


def chain(folder: Path) -> None:
    """Gather, train and settle, without Kedro."""
    from chain import retrain

    retrain(*places(folder), folder)


def whole_run(folder: Path) -> None:
    """Run the retrain pipeline as ``kedro run`` does."""
    from countermove.__main__ import main

    os.chdir(folder)
    sys.argv = ["kedro"]
    main(["--pipeline=retrain", "--env=test", "--params=serm.training.selection=none"])


SCENARIOS: dict[str, Callable[[Path], None]] = {
    "promote": promote,
    "keep": keep,
    "rollback": go_back,
    "block": block,
    "recover": recover_again,
    "use": use,
    "withdraw": partial(act, name="withdraw"),
    "supersede": partial(act, name="supersede"),
    "restore": partial(act, name="restore"),
    "confirm": partial(act, name="confirm"),
    "shift": shift,
    "open_office": open_office,
    "try_beside": try_beside,
    "rehearsed": rehearsed,
    "sign": sign,
    "chain": chain,
    "run": whole_run,
}


def obey(order: dict[str, Any]) -> None:
    """Do as ordered, in a child; never returns."""
    steps, code = Steps(order.get("kill_at"), order.get("kill_at_rename")), 0
    try:
        steps.watch(returns=order["scenario"] != "run")
        SCENARIOS[order["scenario"]](Path(order["folder"]))
    except SystemExit as left:
        code = int(left.code or 0)
    except CountermoveError as error:
        code = 1
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
        sys.stderr.flush()
    finally:
        sys.setprofile(None)
        sys.stderr.write(f"steps: {steps.count}\n")
        sys.stderr.flush()
    os._exit(code)


def forked(order: dict[str, Any]) -> dict[str, Any]:
    child = os.fork()
    if child == 0:
        log = os.open(LOG, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(log, 1)
        os.dup2(log, 2)
        obey(order)
    if "kill_after" in order:
        time.sleep(order["kill_after"])
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    killed = os.WIFSIGNALED(status)
    return {"killed": killed, "code": None if killed else os.WEXITSTATUS(status)}


def rehearse() -> None:
    """Import whatever is imported on the way, so that all steps are steps of the work."""
    with TemporaryDirectory() as scratch:
        for scenario in (promote, promote, go_back, use, recover_again):
            scenario(Path(scratch))
        for name in ("withdraw", "restore", "supersede", "confirm"):
            act(Path(scratch), name)
        shift(Path(scratch))
        sign(Path(scratch))


if __name__ == "__main__":
    rehearse()
    if sys.argv[1:]:
        # The first run imports and compiles, so that forks need not.
        with contextlib.suppress(SystemExit), contextlib.redirect_stdout(sys.stderr):
            SCENARIOS[sys.argv[1]](Path(sys.argv[2]))
    for line in sys.stdin:
        sys.stdout.write(json.dumps(forked(json.loads(line))) + "\n")
        sys.stdout.flush()
