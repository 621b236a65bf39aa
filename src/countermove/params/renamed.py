"""Experiments under their old names: pipelines and groups of settings that are ``paper`` today."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

TRANSFER = "transfer_experiments"
FOLDERS: Mapping[str, str] = {
    **dict.fromkeys(("lemma", "dag", "fico", "replicator", "bandit", "tightness"), TRANSFER),
    "recourse": "recourse_experiments",
    "text": "recourse_text",
    "run_times": "run_times",
    "stylised": "stylised",
    "tradeoff": "tradeoff",
}
"""Where the results of each kind go unless ``paper.name`` says; once also the name of a pipeline
and of its group of settings."""
KINDS = {old: kind for kind, old in FOLDERS.items() if old != TRANSFER}
OLD = frozenset(FOLDERS.values())
FORMERLY = "formerly"
"""The key of ``paper`` by which the command line says which old name a run was given."""


def renamed_run(
    pipelines: Sequence[str], params: Mapping[str, Any]
) -> tuple[list[str], dict[str, Any], str | None]:
    """Return a run's pipelines and ``--params`` under today's names, and a sentence for the user.

    Without an old name nothing changes, and there is nothing to say.
    """
    old = [name for name in pipelines if name in OLD]
    if "paper" in pipelines:
        old += [group for group in params if group in OLD]
    if not old:
        return list(pipelines), dict(params), None
    name = old[0]
    today = list(dict.fromkeys("paper" if one in OLD else one for one in pipelines))
    marked = {**params, "paper": {**params.get("paper", {}), FORMERLY: name}}
    group = paper_group(name, params.get(name) or {})
    kind = group["experiment"]["kind"]
    said = f"pipeline {name!r} is now 'paper' with paper.experiment.kind={kind}; running that"
    return today, marked, said


def renamed_settings(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters in which a run's old group is ``paper``, and other old groups are not."""
    today = {group: given for group, given in parameters.items() if group not in OLD}
    if "model" in today:  # --params model=<path>
        today["audit"] = {**(today.get("audit") or {}), "model": today.pop("model")}
    paper = dict(today.get("paper") or {})
    name = paper.pop(FORMERLY, None)
    if name is not None:
        paper = paper_group(name, parameters.get(name) or {})
    return {**today, "paper": paper} if "paper" in today else today


def paper_group(name: str, group: Mapping[str, Any]) -> dict[str, Any]:
    """Return an old group as the group ``paper``.

    >>> paper_group("tradeoff", {"splits": 2})
    {'name': 'tradeoff', 'experiment': {'kind': 'tradeoff', 'splits': 2}}
    """
    rest = {key: value for key, value in group.items() if key != "name"}
    if name == TRANSFER:
        experiment = {"kind": "replicator"} | rest.pop("experiment", {}) | rest
    else:
        if name == "stylised" and "experiment" in rest:
            rest["picture"] = rest.pop("experiment")
        experiment = {"kind": KINDS[name]} | rest
    return {"name": group.get("name", name), "experiment": experiment}


def results_of(paper: Mapping[str, Any]) -> dict[str, str]:
    """Return the kind of the experiment that settings ask for, and the folder of its results."""
    kind = str((paper.get("experiment") or {}).get("kind", "replicator"))
    return {"kind": kind, "name": str(paper.get("name") or FOLDERS.get(kind, kind))}
