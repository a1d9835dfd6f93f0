"""The code in pages of the documentation, and a reader who types it.

A page's fenced blocks run in order in one folder. A block whose first line is a comment with a path (`# tune.py`) is
saved as that file. Other blocks run by their language:

- `console`: each line after `$ ` is a command; the lines below it are its output, in which `...` stands for anything. A
  command that ends in `&` keeps running until the end of the page, and its output is awaited.
- `sh`: the block is a script.
- `python`: the block is a script. All of a page share their names.
- `yaml`: the block is a study file or a component file, which is checked.

`<!-- numbers vary -->` above a block is for the output of one run: any number, and any width of a gap or of a rule, may
stand where it shows one, and as many lines of one shape as the run has. `<!-- numbers vary; may differ: Verdict -->`
also names, with commas between them, how lines begin that other runs lack or write otherwise.

Pages show what a quiet machine prints: lines about the load of other processes are compared with nothing. `/home/you`
is the folder of the reader, and `agent=tuner` the name of the machine.
`<!-- not executed: REASON -->` above a block exempts it. `<!-- slow -->` and `<!-- needs: slurm -->` are about a page.
"""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import yaml

from docs._ext.pages import ROOT
from tests.factories import run_blocks
from tests.factories.patience import PATIENCE, wait_for

EXECUTED = ("console", "sh", "python", "yaml")
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
REASON = re.compile(r"<!-- not executed: (.+?) -->\s*\Z", re.DOTALL)
VARY = re.compile(r"<!-- numbers vary(?:; may differ: (.+?))? -->\s*\Z")
# What commands print in addition on a machine that other programs use.
BUSY = re.compile(
    r"^(?:(?:warning: )?timing: |warning: the timing is doubtful|other processes: |\S+ \S+ WARNING timings on this "
    r"|Condition: |To see why, read the column 'doubt'|CPU time is less affected|\d+ of \d+ timings? ).*\n"
    r"|; \d+ of \d+ rounds were disturbed",
    re.MULTILINE,
)
NUMBER = re.compile(r"\d[\d.,]*(?<![.,])")
SAVED_AS = re.compile(r"# ([\w./-]+\.\w+)\n")
INDENTED = re.compile(r"^    (?:\$ )?(?:trimtab|trimtab-agent|trimtab-service) (?!──)[\w-]", re.MULTILINE)
ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


@dataclass(frozen=True)
class Block:
    """One fenced block. `reason` says why it is not executed, `path` is the file as which it is saved.

    `vary`: the numbers of its output are those of one run. `differing`: so are lines that begin with these words.
    """

    page: Path
    line: int
    language: str
    text: str
    reason: str
    path: str
    vary: bool
    differing: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def pages() -> list[Path]:
    """Return the pages whose code is executed."""
    found = [
        path for path in (ROOT / "docs").rglob("*.md") if not path.relative_to(ROOT / "docs").parts[0].startswith("_")
    ]
    return [*sorted(found), *(ROOT / name for name in ("README.md", "sdk/README.md", "agents/README.md"))]


def blocks(page: Path) -> list[Block]:
    """Return the blocks of a page in languages that are executed, and those that are saved as files."""
    text = page.read_text()
    found = []
    for match in FENCE.finditer(text):
        saved = SAVED_AS.match(match[2])
        before = text[: match.start()]
        reason, vary = REASON.search(before), VARY.search(before)
        differing = tuple(vary[1].split(", ")) if vary and vary[1] else ()
        if match[1] in EXECUTED or saved:
            line = text.count("\n", 0, match.start()) + 1
            content = match[2][saved.end() :] if saved else match[2]
            why, path = reason[1] if reason else "", saved[1] if saved else ""
            found.append(Block(page, line, match[1], content, why, path, vary is not None, differing))
    return found


def is_slow(page: Path) -> bool:
    """Return whether the code of a page takes minutes."""
    return "<!-- slow -->" in page.read_text()


def needs(page: Path) -> str:
    """Return what a page needs in addition to the service: slurm, ray, postgresql or nothing."""
    match = re.search(r"<!-- needs: (\w+) -->", page.read_text())
    return match[1] if match else ""


def commands_outside_of_blocks(page: Path) -> list[str]:
    """Return the commands of a page that no fenced block has."""
    return [match[0].strip() for match in INDENTED.finditer(FENCE.sub("", page.read_text()))]


class Reader:
    """Somebody who follows a page in `folder`. `replaced` has addresses and tokens of the
    test by those of the page."""

    def __init__(self, folder: Path, environment: Mapping[str, str], replaced: Mapping[str, str]) -> None:
        self.folder = folder
        self._replaced = replaced
        self._environment = {**os.environ, **environment}
        self._running: list[tuple[subprocess.Popen[bytes], IO[bytes]]] = []
        self._python: subprocess.Popen[str] | None = None

    def follow(self, block: Block) -> None:
        """Do what a block says. Raises AssertionError with the output if it does not work as the page shows."""
        text = self._adapted(block.text)
        if block.path:
            file = self.folder / block.path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
            return
        match block.language:
            case "console":
                for command, expected in console(text):
                    self._type(block, command, expected)
            case "sh":
                self._run(block, ["bash", "-euo", "pipefail", "-c", text])
            case "python":
                self._execute(block, text)
            case _:
                self._check(block, text)

    def close(self) -> None:
        """End what still runs in the background."""
        if self._python is not None:
            self._python.communicate(timeout=PATIENCE)
        for process, log in reversed(self._running):
            os.killpg(process.pid, signal.SIGTERM)
            process.wait(PATIENCE)
            log.close()

    def _type(self, block: Block, command: str, expected: str) -> None:
        if command.endswith(" &"):
            self._start(block, command.removesuffix(" &"), expected)
            return
        output = self._run(block, ["bash", "-c", command])
        if expected:
            shown = pattern(without(expected, block.differing), block.vary)
            same = shown.fullmatch(without(output, block.differing))
            assert same, f"{block}: {command}\nshown:\n{expected}\nbut it is:\n{output}"

    def _start(self, block: Block, command: str, expected: str) -> None:
        path = self.folder / f"background-{len(self._running)}.log"
        log = path.open("wb")
        process = subprocess.Popen(
            ["bash", "-c", f"exec {command}"],
            cwd=self.folder,
            env=self._environment,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        self._running.append((process, log))
        shown = re.compile(f"(?m)^{pattern(without(expected, ()), block.vary).pattern.strip()}")

        def is_shown() -> bool:
            output = path.read_text(errors="replace")
            assert process.poll() is None, f"{block}: {command} has ended:\n{output}"
            return shown.search(output) is not None

        wait_for(is_shown, f"{block}: {command} prints {expected!r}")

    def _run(self, block: Block, argv: Sequence[str]) -> str:
        run = subprocess.run(
            argv,
            cwd=self.folder,
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        output = ANSI.sub("", run.stdout)
        assert run.returncode == 0, f"{block}: {shlex.join(argv)}\nended with {run.returncode}:\n{output}"
        return output if output.endswith("\n") else f"{output}\n"

    def _execute(self, block: Block, text: str) -> None:
        """Run a block of Python after the page's earlier ones, in the same process."""
        script = self.folder / f"line-{block.line}.py"
        script.write_text(text)
        if self._python is None:
            self._python = subprocess.Popen(
                [sys.executable, "-m", "tests.factories.run_blocks"],
                cwd=self.folder,
                env={**self._environment, "PYTHONPATH": str(ROOT)},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
        assert self._python.stdin is not None
        assert self._python.stdout is not None
        self._python.stdin.write(f"{script}\n")
        self._python.stdin.flush()
        output = ""
        for line in self._python.stdout:
            output += line
            if line.strip("\n") in (run_blocks.DONE, run_blocks.FAILED):
                break
        assert output.endswith(f"{run_blocks.DONE}\n"), f"{block} failed:\n{output}"

    def _check(self, block: Block, text: str) -> None:
        """Check a file of which the page shows only the text."""
        content = yaml.safe_load(text)
        assert isinstance(content, dict), f"{block} is no mapping; say why it is not executed"
        if "objectives" in content:
            file = self.folder / "shown.yaml"
            file.write_text(text)
            checker = Path(__file__).with_name("check_study_file.py")
            self._run(block, [sys.executable, str(checker), str(file)])
        else:
            assert "applications" in content, f"{block} is neither a study file nor a component file; say why"
            file = self.folder / "shown" / "component.yaml"
            file.parent.mkdir(exist_ok=True)
            file.write_text(text)
            self._run(block, ["trimtab-agent", "check", str(file)])

    def _adapted(self, text: str) -> str:
        for shown, real in self._replaced.items():
            text = text.replace(shown, real)
        return text


def console(text: str) -> Iterator[tuple[str, str]]:
    """Yield each command of a console block with its output."""
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        match = re.match(r"((?:.*\\\n)*.*)\n?", part)
        assert match
        yield match[1].replace("\\\n", " ").strip(), part[match.end() :]


def without(text: str, beginnings: Sequence[str]) -> str:
    """Return the text without the lines that begin with one of these words, and without those of a busy machine."""
    lines = BUSY.sub("", text).splitlines(keepends=True)
    return "".join(line for line in lines if not line.lstrip().startswith(tuple(beginnings)))


def pattern(shown: str, vary: bool = False) -> re.Pattern[str]:
    """Return the pattern of outputs that look like the shown one, in which `...` stands for anything.

    `vary`: other numbers, gaps and rules may stand in their places, and each line as often as the output has it.
    """
    shapes: list[str] = []
    for line in shown.strip("\n").splitlines():
        if line.strip() == "...":
            shapes.append(r"(?:.*\n)*?")
            continue
        parts = (_varied(part.rstrip()) if vary else re.escape(part.rstrip()) for part in line.split("..."))
        shape = ".*".join(parts) + r"[ ]*\n"
        if vary:
            shape = f"(?:{shape})+"
        if not vary or shapes[-1:] != [shape]:
            shapes.append(shape)
    return re.compile(r"\s*" + "".join(shapes) + r"\s*")


def _varied(text: str) -> str:
    escaped = NUMBER.pattern.join(re.escape(part) for part in NUMBER.split(text))
    return re.sub("─+", "─+", re.sub(r"(?:\\ )+", " +", escaped))


def count() -> tuple[dict[str, int], dict[str, int]]:
    """Return the numbers of blocks by language: those that are executed or saved as files, and those that are not."""
    every = [block for page in pages() for block in blocks(page)]
    executed = Counter("file" if block.path else block.language for block in every if not block.reason)
    return dict(executed), dict(Counter(block.language for block in every if block.reason))


if __name__ == "__main__":
    print("executed: {}\nnot executed: {}".format(*count()))
