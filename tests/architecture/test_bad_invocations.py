"""A hundred ways to get a command wrong: each is answered in a sentence, never by a traceback.

They run in one process, against one copy of the project; a few are also typed in a shell.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from click.testing import CliRunner
from kedro.framework.cli.cli import KedroCLI
from kedro.framework.project import settings
from kedro.io import DatasetError
from tests.conftest import copy_project

from countermove.cli import cli  # noqa: F401  (it says errors in one sentence)

DEEP = "{a: " * 3000 + "1" + "}" * 3000
Prepare = Callable[[Path], object]


class Wrong(NamedTuple):
    """What is typed, what is said, and what lies in the project that should not."""

    typed: str
    said: str
    prepare: Prepare | None = None


def put(place: str, content: str | bytes) -> Prepare:
    """Return what writes a file into the project."""

    def write(project: Path) -> None:
        path = project / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)

    return write


def parameters(content: str | bytes) -> Prepare:
    return put("conf/local/parameters.yml", content)


def params(given: str, said: str, pipeline: str = "serm") -> Wrong:
    return Wrong(f"run --pipeline={pipeline} --env=test --params {given}", said)


def not_a_seed(given: str) -> Wrong:
    return params(
        f"seed={given}", "seed must be a whole number of at least 0 and at most 4294967295"
    )


NAMES = [
    Wrong("run --pipeline=smer", "there is no pipeline 'smer'; did you mean 'serm'?"),
    Wrong("run --pipelines=ingest,trainig", "no pipeline 'trainig'; did you mean 'training'?"),
    Wrong("run --pipeline=xyz", "no pipeline 'xyz'; there are adopt, audit, collective, "),
    Wrong("run --pipeline=serm --pipelines=ingest", "cannot be used together"),
    Wrong("run --env=prd", "no environment 'prd' in .*; did you mean 'prod'?"),
    Wrong("run --env=paper", "no environment 'paper' in .*; "),
    Wrong("run --env=../conf/test", "no environment '../conf/test'"),
    Wrong("run --nodes=ingest.spli", "nodes named .*ingest.spli"),
    Wrong(
        "run --pipeline=ingest --nodes=training.train_blind", "nodes named .*training.train_blind"
    ),
    Wrong("run --from-nodes=training.train_blnd", "nodes named .*training.train_blnd"),
    Wrong("run --to-nodes=advise", "nodes named .*Did you mean: .'recourse.advise'"),
    Wrong("run --from-inputs=train_row", "datasets named .*train_row"),
    Wrong("run --to-outputs=metric", "datasets named .*metric"),
    Wrong("run --tags=nightly", "contains no nodes after applying"),
    Wrong("run --namespaces=traning", "namespaces: .*traning"),
    Wrong("run --runner=Sequential", "no attribute 'Sequential'"),
    Wrong("run --load-versions=blind_modle:1", "blind_modle.* not found in the catalog"),
    Wrong(
        "run --load-versions=blind_model",
        "Expected the form",
    ),
    Wrong(
        "run --env=test --from-nodes=training.make_people --to-nodes=ingest.split",
        "contains no nodes after applying all provided filters",
    ),
    Wrong("run --conf-source=nowhere", "'nowhere' does not exist"),
    Wrong("run --config=nowhere.yml", "'nowhere.yml' does not exist"),
    Wrong("run --only-missing", "No such option|did you mean|Error"),
    Wrong("run serm", "unexpected extra argument"),
    Wrong("rnu", "No such command 'rnu'"),
    Wrong("countermove chekc my", "No such command 'chekc'"),
    Wrong("catalog list-patterns --env=tset", "no environment 'tset'"),
]
SETTINGS = [
    *[not_a_seed(each) for each in ("abc", "-1", "1.5", "1e400", "true", "", "4294967296", "nan")],
    params("seed", "must contain|separated|Invalid|="),
    params("dataset=crdit", "unknown dataset 'crdit': .* did you mean 'credit'?"),
    params("dataset=../../etc/passwd", "'../../etc/passwd' is not a dataset name"),
    params("dataset=", "'.*' is not a dataset name"),
    params("dataset=5", "'5' is not a dataset name"),
    params("smer.cost=1", "no setting smer; did you mean 'serm'?"),
    params("our_bank.branch=7", "no setting our_bank"),
    params("serm.cost.scal=2", "no setting serm.cost.scal; did you mean 'serm.cost.scale'?"),
    params("serm.cost.scale=abc", "serm.cost.scale should be a valid number.*got 'abc'"),
    params("serm.cost.scale=-1", "serm.cost.scale should be greater than 0, got -1"),
    params("serm.cost.scale=1e999", "serm.cost.scale should be a finite number, got "),
    params("serm.cost.scale=nan", "serm.cost.scale should be a finite number, got "),
    params("serm.cost.kind=cubic", "serm.cost has no kind 'cubic'"),
    params("serm.cost=3", "serm.cost"),
    params("serm=3", "serm should be a mapping of settings, got 3"),
    params("serm.score.kind=mlp,serm.score.hidden=0", "serm.score.hidden should be a valid tuple"),
    params("serm.training.patience=0.5", "serm.training.patience should be a valid integer"),
    params("recourse.miss_rate=1", "recourse.miss_rate should be less than 1"),
    params("recourse.method=magic", "recourse.method should be 'auto'"),
    params("ingest.split.train=0.9", "ingest.split: the shares .* must sum to 1"),
    params("ingest.max_rows=-5", "ingest.max_rows should be greater than or equal to 2"),
    params("evaluation.bootstraps=many", "evaluation"),
    params("score.batch=../x", "score.batch must be letters, digits", "score"),
    params("score.batch=2099-01", "2099-01", "score"),
    params(
        "execution.engine=spark",
        "execution.engine should be 'serial', 'threads' or 'dask'",
        "serm_parts",
    ),
    params(
        "execution.workers=0",
        "execution.workers should be greater than or equal to 1",
        "serm_parts",
    ),
    params("retrain.gates.nosuch.limit=1", "no setting retrain.gates.nosuch", "retrain"),
    params("retrain.window=-1", "retrain.window", "retrain"),
    params("audit.model=nowhere.joblib", "nowhere.joblib", "audit"),
    params("audit.model=README.md", "README.md", "audit"),
    params("paper.experiment.kind=nosuch", "paper.experiment has no kind 'nosuch'", "paper"),
    params("sweep.splits=0", "sweep.splits should be greater than or equal to 1", "sweep"),
    params("lookahead.experiment.kind=figure_9", "did you mean 'figure_", "lookahead"),
    params("collective.participation=2", "collective.participation", "collective"),
]
LOCAL = "run --pipeline=ingest --params dataset=tiny"
FILES = [
    Wrong(LOCAL, "Invalid YAML or JSON file .*parameters.yml", parameters("serm: {cost: [")),
    Wrong(LOCAL, "nested too deeply", parameters(DEEP)),
    Wrong(LOCAL, "not UTF-8", parameters(b"serm: \xff\xfe")),
    Wrong(LOCAL, "parameters.yml must hold names with values", parameters("- a\n- b\n")),
    Wrong(LOCAL, "YAML|tab|character", parameters("serm:\n\tcost: 1\n")),
    Wrong(LOCAL, "configuration cannot be read.*nosuch", parameters("own: ${nosuch}\n")),
    Wrong(LOCAL, "configuration cannot be read|Globals", parameters("own: ${globals:nosuch}\n")),
    Wrong(LOCAL, "ingest.max_row; did you mean", parameters("ingest: {max_row: 5}\n")),
    Wrong(LOCAL, "seed must be a whole number", parameters("seed: one\n")),
    Wrong("run --pipeline=ingest", "unknown dataset 'tinny'", parameters("dataset: tinny\n")),
    Wrong(
        "run --pipeline=ingest",
        "unknown dataset 'x1'",
        put("conf/local/globals.yml", "dataset: x1"),
    ),
    Wrong(
        LOCAL, "no.*Dataset|class|type", put("conf/local/catalog.yml", "raw: {type: no.Dataset}")
    ),
    Wrong(LOCAL, "raw|typed|type", put("conf/local/catalog.yml", "typed: 5")),
    Wrong(LOCAL, "no such setting", put("conf/local/catalog.yml", "x: {type: '${settings:a.b}'}")),
    Wrong(LOCAL, "tiny.yml", put("conf/local/schemas/tiny.yml", "features: {income: [")),
    Wrong(LOCAL, "nested|deep", put("conf/local/schemas/tiny.yml", DEEP)),
    Wrong(LOCAL, "tiny.yml", put("conf/local/schemas/tiny.yml", "[]")),
    Wrong(LOCAL, "tiny.yml", put("conf/local/schemas/tiny.yml", b"\x00\x01\x02")),
    Wrong(LOCAL, "tiny.yml", put("conf/local/schemas/tiny.yml", "")),
    Wrong(LOCAL, "tiny", put("data/01_raw/tiny.csv", "")),
    Wrong(LOCAL, "tiny", put("data/01_raw/tiny.csv", b"\xff\xfe\x00\x01\x00")),
    Wrong(LOCAL, "tiny", put("data/01_raw/tiny.parquet", "this is no parquet")),
    Wrong("run --config=odd.yml", "odd.yml, line 1: .*; correct", put("odd.yml", "run: [")),
    Wrong("run --config=odd.yml", "; correct .* the file of --config", put("odd.yml", "- 1\n")),
    Wrong(LOCAL, "02_intermediate", put("data/02_intermediate", "a file, not a folder")),
    Wrong("run --config=odd.yml", "no pipeline 'smer'", put("odd.yml", "run: {pipelines: smer}")),
]
COMMANDS = [
    Wrong("countermove schema nowhere.csv", "nowhere.csv"),
    Wrong("countermove schema conf", "conf"),
    Wrong("countermove schema odd.csv", "odd.csv", put("odd.csv", "")),
    Wrong("countermove schema odd.csv", "odd.csv", put("odd.csv", b"\x89PNG\r\n\x1a\n" * 20)),
    Wrong("countermove schema odd.parquet", "odd.parquet", put("odd.parquet", "no")),
    Wrong(
        "countermove schema odd.csv --name=../x",
        "'../x' does not make a dataset name",
        put("odd.csv", "a,b\n1,2\n"),
    ),
    Wrong("countermove schema odd.csv --label=z", "'z'", put("odd.csv", "a,b\n1,2\n2,1\n")),
    Wrong("countermove check nosuch", "unknown dataset 'nosuch'"),
    Wrong("countermove check adult", "countermove fetch adult"),
    Wrong("countermove check tiny --env=tset", "no environment 'tset'"),
    Wrong("countermove fetch adlut", "did you mean 'adult'"),
    Wrong("countermove fetch", "name a table, or use --all"),
    Wrong("countermove fetch adult --file nowhere.whl", "nowhere.whl"),
    Wrong("countermove rollback --env=test", "no champion|no earlier|version"),
    Wrong("countermove rollback v9 --env=test", "v9|champion"),
    Wrong("countermove diff v1 --env=test", "v1|champion"),
    Wrong("countermove withdraw 2099-01 --env=test", "2099-01"),
    Wrong("countermove supersede 2099-01 --env=test", "2099-01"),
    Wrong("countermove batches --confirm=2099-01 --env=test", "2099-01"),
    Wrong("countermove sign --env=test", "COUNTERMOVE_REGISTRY_KEY"),
    Wrong("countermove history --dataset=crdit", "unknown dataset 'crdit'"),
    Wrong("run --pipeline=score --env=test", "champion|score.batch"),
    Wrong(
        "run --pipeline=reporting --env=test",
        "there is no file .*typed.parquet; run the pipeline",
    ),
]
ALL = [*NAMES, *SETTINGS, *FILES, *COMMANDS]
HEAVY = {
    "sweep",
    "serm.score.hidden",
    "rollback",
    "withdraw",
    "supersede",
    "batches",
    "sign",
    "diff",
    "score",
    "audit",
    "reporting",
}
"""What imports torch or a database before it can refuse: as good as the rest, but slow."""


def marked(wrong: Wrong) -> Wrong:
    words = set(re.split(r"[ =,]", wrong.typed))
    return pytest.param(wrong, marks=pytest.mark.slow if words & HEAVY else ())


def test_there_are_a_hundred_and_each_is_another():
    assert len(ALL) >= 100
    assert len({(each.typed, repr(each.prepare), each.said) for each in ALL}) == len(ALL)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A copy of the project in which this process stands."""
    project = copy_project(tmp_path_factory.mktemp("wrong"))
    before, hooks = Path.cwd(), settings.DISABLE_HOOKS_FOR_PLUGINS
    os.chdir(project.path)
    yield project.path
    os.chdir(before)
    settings.set("DISABLE_HOOKS_FOR_PLUGINS", hooks)


@pytest.fixture(scope="module")
def kedro(place: Path) -> KedroCLI:
    return KedroCLI(place)


def shown(error: BaseException, capsys: pytest.CaptureFixture[str]) -> tuple[str, int]:
    """Return what a shell shows of an error that nothing caught, and the exit code."""
    with pytest.raises(SystemExit) as ended:
        sys.excepthook(type(error), error, error.__traceback__)
    return capsys.readouterr().err, int(ended.value.code)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "wrong", [marked(each) for each in ALL], ids=lambda wrong: wrong.typed.replace("/", ":")
)
def test_a_sentence_says_what_is_wrong(wrong, place, kedro, capsys):
    for left in ("conf/local", "data"):
        shutil.rmtree(place / left)
    for made in ("conf/local", "data/01_raw"):
        (place / made).mkdir(parents=True)
    if wrong.prepare is not None:
        wrong.prepare(place)
    done = CliRunner().invoke(kedro, wrong.typed.split(), prog_name="kedro")
    said = done.output
    if not isinstance(done.exception, SystemExit):  # In a shell Python shows it by our hook.
        said, code = shown(done.exception, capsys)
        assert code != 0
    assert done.exit_code != 0
    assert "Traceback" not in said
    assert "not foreseen" not in said
    assert re.search(wrong.said, said), said
    assert len(said.strip().splitlines()[-1]) < 1200


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (
            OSError(errno.ENOSPC, "No space left on device", "a.csv"),
            "the disk is full at a.csv; free",
        ),
        (
            OSError(errno.EROFS, "Read-only file system", "a"),
            r"no access at a \(read-only file system",
        ),
        (
            PermissionError(errno.EACCES, "Permission denied", "a"),
            r"no access at a \(permission denied",
        ),
        (OSError(errno.EADDRINUSE, "Address already in use"), "the port is taken; choose another"),
        (
            ModuleNotFoundError("x", name="xgboost"),
            "xgboost is not installed; install it",
        ),
        (FileNotFoundError("a.parquet"), "no file a.parquet; run the pipeline that makes it"),
        (MemoryError(), "memory is full; use fewer rows"),
        (RecursionError(), "nested too deeply"),
        (
            ZeroDivisionError("by 0"),
            "ZeroDivisionError: by 0. This was not foreseen: logs/last_error",
        ),
        (OSError(errno.EIO, "sftp://me:secret@host"), r"sftp://me:\*\*\*@host"),
    ],
    ids=repr,
)
def test_what_the_machine_refuses_is_one_sentence_and_the_log_has_the_rest(
    error, said, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    wrapped = DatasetError("wrapped by Kedro")
    wrapped.__cause__ = error
    sentence, code = shown(error if isinstance(error, ZeroDivisionError) else wrapped, capsys)
    assert (code, len(sentence.strip().splitlines())) == (1, 1)
    assert re.search(said, sentence), sentence
    kept = (tmp_path / "logs" / "last_error.txt").read_text()
    assert type(error).__name__ in kept
    assert "secret" not in kept


@pytest.mark.slow
def test_in_a_shell_a_sentence_is_all_there_is(project):
    for command in (("catalog", "list-patterns"), ("run", "--pipeline=ingest")):
        done = project.kedro(*command, "--env=tset")
        assert (done.returncode, "Traceback" in done.stderr) == (1, False)
        assert "no environment 'tset'" in done.stderr
    both = project.kedro("run", "--pipeline=serm", "--pipelines=ingest")
    assert (both.returncode, "cannot be used together" in both.stderr) == (1, True)
