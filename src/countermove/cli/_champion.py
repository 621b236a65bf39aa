"""Commands about a champion, and the batches it learns from."""

from __future__ import annotations

from typing import Any

import click

from countermove.cli._listing import CHAMPION, countermove
from countermove.pipelines.retrain.commands import (
    change_batch,
    for_a_dataset,
    forget_person,
    list_batches,
    roll_back,
    show_difference,
    show_history,
    sign_records,
)


@countermove.command(topic=CHAMPION, example="history --env=prod")
@for_a_dataset
def history(context: Any) -> None:
    """List every decision about the champion, and how often forecasts held."""
    show_history(context)


@countermove.command(topic=CHAMPION, example="rollback --env=prod")
@click.argument("version", required=False)
@click.option("--force", is_flag=True, help="Also to a version that its gates refused.")
@for_a_dataset
def rollback(context: Any, version: str | None, force: bool) -> None:
    """Make an earlier VERSION the champion again; the one before the present by default."""
    roll_back(context, version, force)


@countermove.command(topic=CHAMPION, example="batches --env=prod")
@click.option("--confirm", metavar="NAME", help="Take a batch whose date lies in the future.")
@click.option("--confirm-labels", metavar="NAME", help="Take a batch whose labels look wrong.")
@for_a_dataset
def batches(context: Any, confirm: str | None, confirm_labels: str | None) -> None:
    """List labelled batches: state, content, rows, rows set aside, date."""
    list_batches(context, confirm, confirm_labels)


_REASON = click.option("--reason", default="", help="Why, for the record.")


@countermove.command(topic=CHAMPION, example='withdraw 2026-11 --reason="wrong labels"')
@click.argument("name")
@_REASON
@click.option("--undo", is_flag=True, help="Take the batch back.")
@for_a_dataset
def withdraw(context: Any, name: str, reason: str, undo: bool) -> None:
    """Leave batch NAME out of all later retrainings; it stays on record."""
    change_batch(context, "restore" if undo else "withdraw", name, reason)


@countermove.command(topic=CHAMPION, example="supersede 2026-11")
@click.argument("name")
@_REASON
@for_a_dataset
def supersede(context: Any, name: str, reason: str) -> None:
    """Take the corrected content of batch NAME in place of the one that was used."""
    change_batch(context, "supersede", name, reason)


@countermove.command(topic=CHAMPION, example="sign --env=prod")
@click.option("--unsigned", is_flag=True, help="Also records that bear no signature yet.")
@for_a_dataset
def sign(context: Any, unsigned: bool) -> None:
    """Sign every record of the registry with the present key, as after a change of keys."""
    sign_records(context, unsigned)


@countermove.command(topic=CHAMPION, example="diff 2026-10-01T02.00.00.000Z")
@click.argument("old")
@click.argument("new", required=False)
@for_a_dataset
def diff(context: Any, old: str, new: str | None) -> None:
    """Say in plain words what differs between version OLD and NEW (the champion)."""
    show_difference(context, old, new)


@countermove.command(topic=CHAMPION, example="forget C-1042")
@click.argument("person")
@for_a_dataset
def forget(context: Any, person: str) -> None:
    """Delete the person with the id PERSON from open advice, quarantine and batches."""
    forget_person(context, person)
