"""Names that other people have chosen cannot control a terminal, and errors show no password of an address."""

import ast
import io
import logging
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from rich.table import Table
from rich.text import Text

import trimtab.terminal
import trimtab_components.terminal
from service.config.log_formats import Json
from service.config.log_formats import Line as ServiceLine
from service.config.settings.base import database
from service.core.errors import InvalidInput as ServiceInvalidInput
from trimtab.errors import InvalidInput, NotFound
from trimtab.integrations.optuna.storage import import_storage
from trimtab.terminal_console import TerminalConsole
from trimtab_agent.main import Line as AgentLine

ROOT = Path(__file__).resolve().parents[2]
MODULES: list[ModuleType] = [trimtab_components.terminal, trimtab.terminal]
# The title of the window, cleared screen (C0 and C1), reversed order of letters, a carriage return, an unseen tag.
HOSTILE = "x\x1b]0;owned\x07\x1b[2J\x9b2J\u202etxt.exe\u2066\r\U000e0041"
SHOWN = r"x\x1b]0;owned\x07\x1b[2J\x9b2J\u202etxt.exe\u2066\r\U000e0041"
# Number signs of Arabic, Syriac and Kaithi script, and joiners of hieroglyphs, which have a visible form.
VISIBLE_FORMATS = {*range(0x600, 0x606), 0x6DD, 0x70F, 0x890, 0x891, 0x8E2, 0x110BD, 0x110CD}

SOURCES = ("sdk/trimtab", "agents/trimtab_agent", "agents/trimtab_components", "service")
PRINTING = {"print", "echo", "secho"}
STREAMS = {"stdout", "stderr", "__stdout__", "__stderr__"}
# Files that may print by themselves, each with its reason.
EXEMPT = {
    "agents/trimtab_agent/supervisor/batch.py": "writes into the job's own output file, texts of this program alone",
    "service/replay/cli.py": "makes the console of service/replay/command.py",
    "service/embedded/archive.py": "shows a bar with the number of bytes",
}
# Calls in files that otherwise print nothing, each with its reason.
EXEMPT_CALLS = {
    ("sdk/trimtab/_internal/study/optimize.py", "print"): "ends a forked child as Python ends a program",
    ("service/operating.py", "sys.stdout.buffer"): "writes the export of a tenant, which is a file of data",
}


@pytest.fixture(params=MODULES, ids=[module.__name__ for module in MODULES])
def module(request: pytest.FixtureRequest) -> ModuleType:
    return request.param  # type: ignore[no-any-return]


def test_the_two_files_are_equal() -> None:
    assert len({Path(str(module.__file__)).read_text() for module in MODULES}) == 1


def test_control_characters_are_visible(module: ModuleType) -> None:
    assert module.visible(HOSTILE) == SHOWN
    assert module.visible("Größe 最適化 \u05d0\u05d1 👍\n\tend") == "Größe 最適化 \u05d0\u05d1 👍\n\tend"
    assert module.on_one_line("a\n\tb\x00") == r"a\n\tb\x00"
    # Once is enough, because the escapes are printable.
    assert module.visible(SHOWN) == SHOWN


def test_every_control_and_format_character_of_unicode_is_covered() -> None:
    missed = [
        hex(code)
        for code in range(0x110000)
        if unicodedata.category(chr(code)) in ("Cc", "Cf", "Cs", "Zl", "Zp")
        and code not in VISIBLE_FORMATS
        and chr(code) not in "\n\t"
        and trimtab_components.terminal.visible(chr(code)) == chr(code)
    ]
    assert not missed


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("postgresql://ann:geheim@db/trimtab", "postgresql://ann:***@db/trimtab"),
        ("postgresql+psycopg://ann:ge@heim@db:5432/x?sslmode=require", "postgresql+psycopg://ann:***@db:5432/x?sslmode=require"),
        ("mysql://ann:ge/heim@db/x", "mysql://ann:***@db/x"),
        ("redis://:geheim@broker:6379/0", "redis://:***@broker:6379/0"),
        ("'https://ann:geheim@host/' and 'amqp://bob:geheim@mq//'", "'https://ann:***@host/' and 'amqp://bob:***@mq//'"),
        ("postgresql:///x?host=db&password=geheim&user=ann", "postgresql:///x?host=db&password=***&user=ann"),
        ("host=db password='ge heim' user=ann", "host=db password=*** user=ann"),
        ("https://db.example:8471/studies", "https://db.example:8471/studies"),
        ("mail ann@example.org, see http://127.0.0.1:8470/docs", "mail ann@example.org, see http://127.0.0.1:8470/docs"),
    ],
)  # fmt: skip
def test_passwords_of_addresses_are_hidden(module: ModuleType, text: str, shown: str) -> None:
    assert module.without_passwords(text) == shown


def test_write_makes_all_output_visible(module: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    module.write(HOSTILE)
    module.write(f"redis://:geheim@mq {HOSTILE}", error=True)
    assert capsys.readouterr() == (f"{SHOWN}\n", f"redis://:***@mq {SHOWN}\n")


@pytest.mark.parametrize("made", [str, Text, lambda text: Text.assemble((text, "bold"), "!")])
def test_the_console_of_the_command_line_shows_control_characters(made: type[str] | type[Text]) -> None:
    file = io.StringIO()
    console = TerminalConsole(file=file, force_terminal=True, width=100)
    table = Table("name")
    table.add_row(made(HOSTILE))
    console.print(table)
    console.print(made(HOSTILE), soft_wrap=True)
    # Rich drops a few of them from a `Text` before the console sees it.
    assert r"\x1b[2J\x9b2J\u202etxt.exe\u2066" in file.getvalue()
    assert not {"\x1b]0", "\x1b[2J", "\x07", "\x9b", "\u202e", "\r", "\U000e0041"} & _contained(file.getvalue())


def test_no_name_is_cut_where_a_program_reads_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    file = io.StringIO()
    table = Table("name", "value")
    table.add_row("a" * 90, "b" * 90)
    TerminalConsole(file=file).print(table)
    assert f"{'a' * 90}" in file.getvalue()
    assert f"{'b' * 90}" in file.getvalue()
    monkeypatch.setenv("COLUMNS", "60")
    narrow = io.StringIO()
    TerminalConsole(file=narrow).print(table)
    assert "a" * 90 not in narrow.getvalue()


def _contained(text: str) -> set[str]:
    return {part for part in ("\x1b]0", "\x1b[2J", "\x07", "\x9b", "\u202e", "\r", "\U000e0041") if part in text}


def test_a_traceback_of_the_sdk_shows_control_characters() -> None:
    error = NotFound("study_not_found", f"There is no study {HOSTILE}.")
    assert str(error) == f"There is no study {SHOWN}."
    assert error.message == f"There is no study {HOSTILE}."


@pytest.mark.parametrize("formatter", [ServiceLine(), AgentLine(), Json()], ids=["service", "agent", "json"])
def test_a_log_line_has_neither_control_characters_nor_passwords(formatter: logging.Formatter) -> None:
    try:
        raise OSError(f"{HOSTILE} at redis://:geheim@mq/0")
    except OSError as error:
        record = logging.LogRecord("x", 40, __file__, 1, HOSTILE, None, (type(error), error, error.__traceback__))
    line = formatter.format(record)
    assert "geheim" not in line
    assert not _contained(line)


def test_no_invalid_value_shows_the_password_of_an_address() -> None:
    for error in (
        InvalidInput.of("storage", "mysql://ann:geheim@db/x", "another, not mysql://ann:geheim@db/x"),
        ServiceInvalidInput("target", "https://ann:geheim@host/", "an address without a user name"),
        ServiceInvalidInput("targets", ["https://ann:geheim@host/"], "an address without a user name"),
    ):
        assert "geheim" not in f"{error} {error!r} {error.data}"
        assert "ann" in str(error)


@pytest.mark.parametrize(
    "url",
    [
        "mysql://ann:geheim@127.0.0.1:1/x",
        "postgresql+psycopg://ann:geheim@127.0.0.1:1/x",
        "postgresql+psycopg://ann:x@geheim/1@127.0.0.1:1/x",
        "postgresql+psycopg://ann:geheim@127.0.0.1:geheim@1/x",
        "nosuch://ann:geheim@127.0.0.1/x",
    ],
)
def test_an_import_from_optuna_does_not_show_the_password_of_the_storage(url: str) -> None:
    unused: Any = None
    with pytest.raises(InvalidInput) as caught:
        next(import_storage(unused, url))
    assert "geheim" not in f"{caught.value} {caught.value.data}"
    assert "***@" in str(caught.value)
    assert caught.value.__suppress_context__


@pytest.mark.parametrize("url", ["postgres:/ann:geheim@db/x", "postgresql://ann:geheim@[db/x", "ann:geheim@db"])
def test_an_address_of_a_database_that_cannot_be_read_is_not_quoted(url: str) -> None:
    with pytest.raises(Exception, match="DATABASE_URL is not the address of a database") as caught:
        database(url)
    assert "geheim" not in str(caught.value)
    assert caught.value.__suppress_context__


def files() -> Iterator[Path]:
    for source in SOURCES:
        yield from (path for path in sorted((ROOT / source).rglob("*.py")) if "_gen" not in path.parts)


def printing(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield the line and the name of each call that writes to a terminal."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        name = ast.unparse(node.func)
        first = ast.unparse(node.args[0]) if node.args else ""
        place, _, last = name.rpartition(".")
        if name == "print" or (last in PRINTING and place in ("typer", "click", "rich")):
            yield node.lineno, name
        elif last in ("write", "writelines") and place.removesuffix(".buffer").rpartition(".")[2] in STREAMS:
            yield node.lineno, place
        elif last == "Console":
            yield node.lineno, name
        elif name == "os.write" and first in ("1", "2"):
            yield node.lineno, "os.write"


def test_the_search_finds_every_way_to_print() -> None:
    ways = "print(1)", "typer.echo(1)", "sys.stderr.write('')", "sys.stdout.buffer.write(b'')", "Console()"
    text = "\n".join((*ways, "os.write(2, b'')", "write(1)"))
    assert [name for _, name in printing(ast.parse(text))] == [
        "print", "typer.echo", "sys.stderr", "sys.stdout.buffer", "Console", "os.write",
    ]  # fmt: skip


def test_nothing_prints_past_the_one_place() -> None:
    found = []
    for path in files():
        name = path.relative_to(ROOT).as_posix()
        if path.name == "terminal.py" or name in EXEMPT:
            continue
        for line, call in printing(ast.parse(path.read_text(encoding="utf-8"))):
            if (name, call) not in EXEMPT_CALLS:
                found.append(f"{name}:{line}: {call}")
    assert not found, "use terminal.write, or out and err of trimtab/cli/output.py:\n" + "\n".join(found)


def test_every_exemption_is_needed() -> None:
    for name in EXEMPT:
        assert [*printing(ast.parse((ROOT / name).read_text()))], name
