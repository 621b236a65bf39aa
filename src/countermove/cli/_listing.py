"""``kedro countermove``: commands by topic, each with an example that can be copied."""

from __future__ import annotations

from typing import Any

import click

from countermove.cli._failures import debug_option, plain_errors

CALL = "kedro countermove"
TABLE, PROJECT, CHAMPION = TOPICS = (
    "A table of your own",
    "The project",
    "A champion in production",
)
WIDTH = 110


class ListedCommand(click.Command):
    """A command with a topic and an example, which fails in plain words."""

    def __init__(self, name: str, topic: str, example: str, **more: Any) -> None:
        more["callback"] = plain_errors(more["callback"])
        more["params"] = [*(more.get("params") or ()), debug_option()]
        more["epilog"] = f"Example: {CALL} {example}"
        super().__init__(name, **more)
        self.topic, self.example = topic, example


class Topics(click.Group):
    """A group that lists its commands by topic, with an example for each."""

    command_class = ListedCommand

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        """Write an example of each command, and what it does."""
        listed = [each for each in self.commands.values() if isinstance(each, ListedCommand)]
        for topic in TOPICS:
            with formatter.section(topic):
                formatter.write_dl(
                    [
                        (each.example, each.get_short_help_str(limit=200))
                        for each in listed
                        if each.topic == topic
                    ],
                    col_max=44,
                )


@click.group(cls=Topics, invoke_without_command=True, context_settings={"max_content_width": WIDTH})
@click.pass_context
def countermove(context: click.Context) -> None:
    """Look after datasets, settings and models.

    Each line below is an example: type it after `kedro countermove`. Options of a command:
    `kedro countermove <command> --help`.
    """
    if context.invoked_subcommand is None:
        click.echo(context.get_help())
