"""`trimtab-agent completion`: a script with which a shell completes commands, options and their words."""

import argparse
import shlex
from collections.abc import Mapping

SHELLS = ("bash", "zsh", "fish")
PROGRAM = "trimtab-agent"

_BASH = """\
_trimtab_agent() {{
    local current="${{COMP_WORDS[COMP_CWORD]}}" before="${{COMP_WORDS[COMP_CWORD - 1]}}" words=""
    if [ "$COMP_CWORD" -eq 1 ]; then
        COMPREPLY=($(compgen -W {commands} -- "$current"))
        return
    fi
    case "${{COMP_WORDS[1]}} $before" in
{words}    esac
    case "${{COMP_WORDS[1]}}" in
{options}    esac
    if [[ "$current" == -* ]]; then
        COMPREPLY=($(compgen -W "$words" -- "$current"))
    fi
}}
complete -o bashdefault -o default -F _trimtab_agent trimtab-agent
"""


def script(shell: str, commands: Mapping[str, argparse.ArgumentParser]) -> str:
    """Return the script for a shell."""
    if shell == "fish":
        return _fish(commands)
    text = _bash(commands)
    return f"autoload -U +X bashcompinit && bashcompinit\n{text}" if shell == "zsh" else text


def _bash(commands: Mapping[str, argparse.ArgumentParser]) -> str:
    options, words = [], []
    for name, command in commands.items():
        listed = " ".join(one for action in command._actions for one in action.option_strings)
        options.append(f"        {name}) words={shlex.quote(listed)} ;;\n")
        for action in command._actions:
            if action.choices and not isinstance(action, argparse._SubParsersAction):
                pattern = "|".join(shlex.quote(f"{name} {one}") for one in action.option_strings)
                if pattern:
                    chosen = shlex.quote(" ".join(map(str, action.choices)))
                    words.append(f'        {pattern}) COMPREPLY=($(compgen -W {chosen} -- "$current")); return ;;\n')
    return _BASH.format(commands=shlex.quote(" ".join(commands)), words="".join(words), options="".join(options))


def _fish(commands: Mapping[str, argparse.ArgumentParser]) -> str:
    lines = []
    for name, command in commands.items():
        about = " ".join((command.description or "").split("\n")[:1])
        lines.append(f"complete -c {PROGRAM} -n __fish_use_subcommand -f -a {name} -d {shlex.quote(about)}")
        for action in command._actions:
            for option in action.option_strings:
                if not option.startswith("--"):
                    continue
                line = f"complete -c {PROGRAM} -n '__fish_seen_subcommand_from {name}' -l {option[2:]}"
                if action.nargs != 0:
                    line += " -r"
                if action.choices:
                    line += f" -f -a {shlex.quote(' '.join(map(str, action.choices)))}"
                lines.append(line)
    return "\n".join(lines) + "\n"
