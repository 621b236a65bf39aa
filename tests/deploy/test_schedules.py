"""The recipes for cron and systemd do what the guide says, with a real shell."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from countermove.production.endings import ENDINGS

DEPLOY = Path(__file__).parents[2] / "deploy"
FIELDS = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 7))


def scheduled(folder: Path, code: int, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the script with a runner that ends with a code."""
    runner = folder / "runner.sh"
    runner.write_text(f'#!/bin/sh\necho "ran with $*"\necho "Error: why" >&2\nexit {code}\n')
    runner.chmod(0o755)
    alert = folder / "alert.sh"
    alert.write_text(f'#!/bin/sh\n{{ echo "$1"; cat; }} > {folder}/alert.txt\n')
    alert.chmod(0o755)
    said = {
        "COUNTERMOVE_PROJECT": str(folder),
        "COUNTERMOVE_RUN": str(runner),
        "COUNTERMOVE_ALERT": str(alert),
    }
    return subprocess.run(
        [str(DEPLOY / "retrain.sh"), "--params=dataset=german"],
        env=os.environ | said | environment,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("code", sorted({each.code for each in ENDINGS if each.success}))
def test_a_good_night_is_quiet_and_logged(tmp_path, code):
    ran = scheduled(tmp_path, code)
    assert (ran.returncode, ran.stdout, ran.stderr) == (code, "", "")
    assert not (tmp_path / "alert.txt").exists()
    log = (tmp_path / "logs" / "retrain.log").read_text()
    assert f"exit code {code}" in log
    assert "ran with --pipeline=retrain --env=prod --params=dataset=german" in log


@pytest.mark.parametrize(
    ("code", "words"), [(each.code, each.alert) for each in ENDINGS if each.alert is not None]
)
def test_a_bad_night_is_told_and_its_code_passed_on(tmp_path, code, words):
    ran = scheduled(tmp_path, code, COUNTERMOVE_ENV="test")
    assert ran.returncode == code
    assert words in ran.stderr
    told = (tmp_path / "alert.txt").read_text()
    assert words in told.splitlines()[0]
    assert "Error: why" in told
    scheduled(tmp_path, 0)
    assert (tmp_path / "logs" / "retrain.log").read_text().count("--- ") == 2


def test_script_unit_and_guide_have_the_codes_of_the_run():
    script = (DEPLOY / "retrain.sh").read_text()
    found = dict(re.findall(r"^    (\d+)\) subject=(.*?) ;;", script, re.MULTILINE))
    named = [ending for ending in ENDINGS if ending.name != "failed"]
    assert found == {str(each.code): f'"{each.alert}"' if each.alert else "" for each in named}
    assert '    *) subject="retraining failed with code $code"' in script
    service = (DEPLOY / "countermove-retrain.service").read_text()
    (good,) = re.findall(r"^SuccessExitStatus=(.*)$", service, re.MULTILINE)
    assert set(map(int, good.split())) == {each.code for each in ENDINGS if each.success} - {0}
    guide = (DEPLOY.parent / "docs" / "guides" / "production.md").read_text("utf-8")
    rows = re.findall(r"^\| (\d+) \| `(\w+)` \| (.*) \| (.*) \|$", guide, re.MULTILINE)
    assert rows == [(str(e.code), e.name, e.meaning, e.to_do) for e in ENDINGS]


def test_what_the_unit_writes_is_for_its_user_alone():
    service = (DEPLOY / "countermove-retrain.service").read_text()
    (mask,) = re.findall(r"^UMask=(\d+)$", service, re.MULTILINE)
    assert 0o666 & ~int(mask, 8) == 0o600


def test_the_line_for_cron_is_one():
    lines = [
        line
        for line in (DEPLOY / "crontab").read_text().splitlines()
        if line and not line.startswith("#") and not re.match(r"\w+=", line)
    ]
    assert len(lines) == 1
    *times, command = lines[0].split(maxsplit=5)
    for field, (least, most) in zip(times, FIELDS, strict=True):
        assert field == "*" or least <= int(field) <= most
    assert command.split()[0].endswith("deploy/retrain.sh")


def test_systemd_accepts_the_units(tmp_path):
    verify = shutil.which("systemd-analyze")
    if verify is None:
        pytest.skip("systemd-analyze is not installed")
    names = [path.name for path in DEPLOY.glob("*.service")] + ["countermove-retrain.timer"]
    for name in names:
        # The program need not be where the unit says it is on another machine.
        text = (DEPLOY / name).read_text().replace("/srv/countermove", str(tmp_path))
        (tmp_path / name).write_text(text.replace("User=countermove", "User=root"))
    (tmp_path / "deploy").mkdir()
    shutil.copy(DEPLOY / "retrain.sh", tmp_path / "deploy")
    for name in ("countermove-retrain.service", "countermove-retrain.timer"):
        ran = subprocess.run(
            [verify, "verify", "--recursive-errors=no", str(tmp_path / name)],
            capture_output=True,
            text=True,
            check=False,
            env=os.environ | {"SYSTEMD_UNIT_PATH": f"{tmp_path}:"},
        )
        assert ran.returncode == 0, ran.stderr
        assert "countermove" not in ran.stderr, ran.stderr
    calendar = re.findall("OnCalendar=(.*)", (DEPLOY / "countermove-retrain.timer").read_text())
    ran = subprocess.run([verify, "calendar", calendar[0]], capture_output=True, check=False)
    assert ran.returncode == 0


@pytest.mark.slow
def test_the_script_runs_a_real_retraining(working):
    said = {
        "COUNTERMOVE_PROJECT": str(working.path),
        "COUNTERMOVE_RUN": f"{sys.executable} -m kedro run",
        "COUNTERMOVE_ENV": "test",
        "OMP_NUM_THREADS": "1",
    }
    night = [str(DEPLOY / "retrain.sh")]
    environment = os.environ | said
    empty = subprocess.run(night, env=environment, capture_output=True, text=True, check=False)
    assert (empty.returncode, empty.stderr) == (0, "")
    assert "no new batch" in (working.path / "logs" / "retrain.log").read_text()
    working.bring_batch("monday")
    full = subprocess.run(night, env=environment, capture_output=True, text=True, check=False)
    assert full.returncode in (0, 3), full.stderr
    assert full.stderr == ""
