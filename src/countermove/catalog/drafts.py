"""Writing a drafted schema, and saying what to do next."""

from __future__ import annotations

import shlex
from pathlib import Path

from countermove.catalog.files import PageDataset
from countermove.data.drafting import Draft
from countermove.errors import ParameterError

RAW = Path("data") / "01_raw"


def save_draft(draft: Draft, path: Path, force: bool) -> None:
    """Write a draft whole; a schema that is there already stays unless ``force`` is given.

    Raises
    ------
    ParameterError
        If the file exists and may not be replaced, or its folder does not exist.
    """
    if path.exists() and not force:
        raise ParameterError(
            f"{path} exists already and may hold your work; use --force to replace it, --name for "
            "another dataset, or --output - to look at the draft first"
        )
    if not path.parent.is_dir():
        raise ParameterError(f"there is no folder {path.parent} to write {path.name} into")
    text = {"open_args_save": {"encoding": "utf-8"}}
    PageDataset(filepath=str(path), fs_args=text).save(draft.text)


def next_steps(draft: Draft, path: Path, file: Path, project: Path) -> str:
    """Return what was written and which commands follow."""
    name = draft.schema.name
    target = RAW / f"{name}{file.suffix}"
    written = path.relative_to(project) if path.is_relative_to(project) else path
    lines = [f"drafted {written}: {draft.guesses} guesses for you to confirm, each marked TODO"]
    lines.append("next:")
    if file.resolve() != (project / target).resolve():
        lines.append(f"  cp {shlex.quote(str(file))} {target}")
    lines.append(f"  kedro countermove check {name}")
    return "\n".join(lines)
