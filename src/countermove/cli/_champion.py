"""Commands about a champion and the batches it learns from."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from kedro.framework.session import KedroSession
from kedro.framework.startup import ProjectMetadata

if TYPE_CHECKING:
    from countermove.production.history import DecisionHistory
    from countermove.production.registry import Registry


def for_a_dataset(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options that say whose champion is meant, and hand over the project."""

    @functools.wraps(command)
    def wrapped(dataset: str | None, env: str | None, **options: Any) -> None:
        metadata: ProjectMetadata = click.get_current_context().obj
        named = {} if dataset is None else {"dataset": dataset}
        session = KedroSession.create(metadata.project_path, env=env, runtime_params=named)
        command(session.load_context(), **options)

    whose = click.option("--dataset", help="Whose champion; the configured dataset unless given.")
    where = click.option("--env", "-e", help="Configuration environment, as of kedro run.")
    return whose(where(wrapped))


@contextmanager
def _alone(context: Any) -> Iterator[tuple[Registry, DecisionHistory]]:
    """Open registry and history while no retraining is at work on them."""
    from countermove.pipelines.retrain.guard import lock_of
    from countermove.production.lock import held

    registry, history = context.catalog.load("registry"), context.catalog.load("history")
    with held(lock_of(context)), history.alone():
        yield registry, history


@click.command()
@for_a_dataset
def history(context: Any) -> None:
    """List every decision about the champion, and how often forecasts held."""
    registry, history = context.catalog.load("registry"), context.catalog.load("history")
    history.add_decisions(registry.decisions())
    pointer = registry.pointer()
    champion = None if pointer is None else pointer.version
    for line in history.decisions().itertuples():
        mark = "*" if line.version == champion else " "
        click.echo(f"{mark} {line.version}  {line.kind:<10}  {line.outcome:<11}  {line.at}")
    for claim, counts in history.held().items():
        click.echo(
            f"forecast {claim}: held for {counts['held']} of {counts['forecasts']} batches, "
            f"contradicted by {counts['contradicted']}"
        )
    click.echo(f"champion: {champion or 'none yet'}")


@click.command()
@click.argument("version", required=False)
@click.option("--force", is_flag=True, help="Also to a version that its gates refused.")
@for_a_dataset
def rollback(context: Any, version: str | None, force: bool) -> None:
    """Make an earlier VERSION the champion again; the one before the present by default."""
    from countermove.production.registry import recover
    from countermove.production.retraining.promotion import roll_back as go_back

    with _alone(context) as (registry, history):
        if version is None:
            for sentence in recover(registry):
                click.echo(sentence)
        decision = go_back(registry, history, version, force)
    click.echo(f"{decision.champion_after} is the champion; before: {decision.champion_before}")


@click.command()
@click.option("--confirm", metavar="NAME", help="Take a batch whose date lies in the future.")
@for_a_dataset
def batches(context: Any, confirm: str | None) -> None:
    """List labelled batches: state, content, rows, rows set aside, date."""
    from countermove.production.retraining.ledger import BatchLedger

    files = context.catalog.load("labelled_batches")
    if confirm is not None:
        with _alone(context) as (registry, history):
            said = BatchLedger(registry).confirm(confirm, files, "confirmed by hand")
            history.note(registry.time(), [said])
            click.echo(said)
        return
    ready = context.params["retrain"].ready
    ledger = BatchLedger(context.catalog.load("registry"))
    states = ledger.states(files, ready)
    width = max((len(each.batch) for each in states), default=0)
    for each in states:
        aside = f", {each.set_aside} quarantined" if each.set_aside else ""
        rows = "? rows" if each.rows is None else f"{each.rows} rows{aside}"
        day = f"  {each.date}" if each.date else ""
        click.echo(f"{each.batch:<{width}}  {each.state:<10}  {each.sha256[:12]}  {rows}{day}")
        if each.words and each.state not in ("new", "taken"):
            click.echo(f"{'':<{width}}  {each.words}")
        elif each.state == "taken" and ledger.corrected(each.batch):
            click.echo(f"{'':<{width}}  {ledger.corrected(each.batch)}")
    if not states:
        click.echo("no batch yet: put one into data/01_raw/batches/<dataset>/<name>.csv")


def _change_batch(context: Any, act: str, name: str, reason: str) -> None:
    """Withdraw, restore or supersede the batch NAME."""
    from countermove.production.retraining.ledger import BatchLedger

    with _alone(context) as (registry, history):
        ledger = BatchLedger(registry)
        if act == "restore":
            said = ledger.restore(name, reason)
        else:
            files = context.catalog.load("labelled_batches")
            said = getattr(ledger, act)(name, files, reason)
        history.note(registry.time(), [said])
    click.echo(said)


_REASON = click.option("--reason", default="", help="Why, for the record.")


@click.command()
@click.argument("name")
@_REASON
@click.option("--undo", is_flag=True, help="Take the batch back.")
@for_a_dataset
def withdraw(context: Any, name: str, reason: str, undo: bool) -> None:
    """Leave batch NAME out of all later retrainings; it stays on record."""
    _change_batch(context, "restore" if undo else "withdraw", name, reason)


@click.command()
@click.argument("name")
@_REASON
@for_a_dataset
def supersede(context: Any, name: str, reason: str) -> None:
    """Take the corrected content of batch NAME in place of the one that was used."""
    _change_batch(context, "supersede", name, reason)


@click.command()
@click.option("--unsigned", is_flag=True, help="Also records that bear no signature yet.")
@for_a_dataset
def sign(context: Any, unsigned: bool) -> None:
    """Sign every record of the registry with the present key, as after a change of keys."""
    from countermove.errors import ParameterError
    from countermove.production.registry.signing import KEY_VARIABLE

    with _alone(context) as (registry, _):
        if not registry.signer.keys:
            raise ParameterError(f"set {KEY_VARIABLE} to the key that is to sign")
        if unsigned:
            registry.signer = replace(registry.signer, unsigned="accept")
        count = registry.sign_all()
    click.echo(f"{count} records are signed with the first key of {KEY_VARIABLE}")


@click.command()
@click.argument("old")
@click.argument("new", required=False)
@for_a_dataset
def diff(context: Any, old: str, new: str | None) -> None:
    """Say in plain words what differs between version OLD and NEW (the champion)."""
    from countermove.errors import ModelFileError
    from countermove.production.retraining.promotion import difference

    registry = context.catalog.load("registry")
    later = registry.champion() if new is None else registry.load(new)
    if later is None:
        raise ModelFileError("there is no champion yet; name two versions")
    for sentence in difference(registry.load(old), later):
        click.echo(sentence)


@click.command()
@click.argument("person")
@for_a_dataset
def forget(context: Any, person: str) -> None:
    """Delete the person with the id PERSON from open advice, quarantine and batches."""
    from countermove.production.forgetting import Kept

    dataset = str(context.config_loader["parameters"]["dataset"])
    data = Path(context.project_path, "data")
    made = data / "02_intermediate" / dataset
    with _alone(context) as (registry, _):
        kept = Kept(
            registry,
            context.catalog.load("schema"),
            scored=context.catalog.load("scored_folder"),
            labelled=data / "01_raw" / "batches" / dataset,
            applicants=data / "01_raw" / "applicants" / dataset,
            tables=(
                made / "quarantine.csv",
                made / "batch_quarantine.csv",
                made / "batch_corrections.csv",
                made / "batch_rows.parquet",
                made / "batch_waiting.parquet",
                made / "label_weights.parquet",
                *sorted((data / "05_model_input" / dataset).glob("challenger_*.parquet")),
            ),
        )
        said = kept.forget(person)
    for sentence in said or [f"nothing of {person!r} is kept for {dataset}; nothing was deleted"]:
        click.echo(sentence)


CHAMPION_COMMANDS = (history, rollback, batches, withdraw, supersede, sign, diff, forget)
