"""The page of the documentation in the help text of each command."""

import typer

from trimtab.cli.output import CONSOLE

PAGE = f"{CONSOLE}/docs/reference/commands.html"


def add_pages(app: typer.Typer, program: str) -> None:
    """Add the address of its page to the help text of each command below `app`, whose name is `program`."""
    for group in app.registered_groups:
        # A hidden name stands for the same group.
        if group.typer_instance is not None and not group.hidden:
            name = f"{program} {group.name}"
            group.typer_instance.info.epilog = _line(name)
            group.epilog = _line(name)
            add_pages(group.typer_instance, name)
    for command in app.registered_commands:
        function = "" if command.callback is None else command.callback.__name__
        name = f"{program} {command.name or function.replace('_', '-')}"
        command.epilog = f"{command.epilog}\n\n{_line(name)}" if command.epilog else _line(name)


def _line(command: str) -> str:
    return f"Documentation: `{PAGE}#{command.replace(' ', '-')}`"
