"""The check of words that `make lint` runs: what it finds and what it leaves alone."""

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
SPEC = importlib.util.spec_from_file_location("check_words", ROOT / "deploy/checkout/check_words.py")
assert SPEC is not None
assert SPEC.loader is not None
check = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(check)


def found(folder: Path, name: str, text: str) -> list[int]:
    path = folder / name
    path.write_text(text)
    return [number for number, _ in check.findings(path, name)]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.md", "The job begins anew.\n"),
        ("a.md", "word " * 25 + "\n"),
        ("a.py", "x = 1  # Nobody is told of it\n"),
        ("a.py", '"""What a trial says."""\n'),
        ("a.py", '"""A door to the rows."""\n'),
        ("a.py", 'raise ValueError("the parameter was given in vain")\n'),
        ("a.ts", "// The list comes beside it.\n"),
        ("a.tsx", "const a = <p>Each trial apart</p>;\n"),
        ("a.tsx", "const a = t`Those of everybody`;\n"),
        ("a.c", "int a; /* as they were */\n"),
        ("a.sh", "true # mends it\n"),
    ],
)
def test_forbidden_words_are_found(tmp_path: Path, name: str, text: str) -> None:
    assert found(tmp_path, name, text) == [1]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.md", "Nothing apart from this. There is no room for it: make room.\n"),
        ("a.md", "Write `anew` never.\n"),
        ("a.md", "```\nrun anew\n```\n"),
        ("a.md", "| " + "word " * 30 + "|\n"),
        ("a.md", "[link](https://example.org/" + "a" * 120 + ")\n"),
        ("a.py", "anew = beside(door)  # a ring of processes, two seconds far apart\n"),
        ("a.py", '"""What is a trial?"""\n'),
        ("a.ts", "const door = beside;\n"),
        ("a.c", "char room[4]; /* the room that blocks take */\n"),
    ],
)
def test_other_words_are_left_alone(tmp_path: Path, name: str, text: str) -> None:
    assert found(tmp_path, name, text) == []


def lines(*words: str) -> str:
    """Return the words as Markdown, ten in a line."""
    return "\n".join(" ".join(words[begin : begin + 10]) for begin in range(0, len(words), 10)) + "\n"


FORTY = lines(*["word"] * 39, "end.")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (lines(*["word"] * 40, "end."), 1),
        ("A short one. " + lines(*["word"] * 40, "end."), 1),
        ("# Title\n\nA short one.\n" + lines(*["word"] * 40, "end."), 4),
        (lines(*["word"] * 38, "with", "`code", "in", "it`", "end."), 1),
        (lines(*["word"] * 39, "[a", "link](https://example.org)."), 1),
        ("- " + lines(*["word"] * 20).replace("\n", "\n    ").rstrip() + "\n    " + lines(*["word"] * 21), 1),
        (lines(*["word"] * 20, "e.g.", *["word"] * 20), 1),
    ],
)
def test_sentences_of_more_than_forty_words_are_found(tmp_path: Path, text: str, line: int) -> None:
    assert found(tmp_path, "a.md", text) == [line]


@pytest.mark.parametrize(
    "text",
    [
        FORTY,
        FORTY + FORTY,
        FORTY.replace("end.", "(end.)") + FORTY,
        FORTY.replace("end.", "end: **why?**").replace("word ", "", 1) + "`code` " + FORTY.replace("word ", "", 1),
        # An item of a list and an empty line end a sentence.
        "- " + FORTY.replace("end.", "end").rstrip() + "\n- " + FORTY.replace("end.", "end"),
        FORTY.replace("end.", "end:") + "\n1. " + FORTY,
        # These are no words.
        FORTY.replace("end.", "`a long command --with options`."),
        FORTY.replace("end.", "end — / = % ."),
        FORTY.replace("end.", "[end](a_(b).md)."),
        "```\n" + FORTY * 2 + "```\n",
        "Text:\n\n    " + FORTY.replace("\n", "\n    ").replace(".", "") * 2 + "\n",
        "".join(f"| {row} |\n" for row in FORTY.replace(".", "").splitlines() * 2),
        "<!-- " + FORTY.replace(".", "") * 2 + "-->\n",
    ],
)
def test_other_sentences_are_left_alone(tmp_path: Path, text: str) -> None:
    assert found(tmp_path, "a.md", text) == []


@pytest.mark.parametrize(
    "text",
    [
        'logger.info("lease %s expired", lease)',
        'logger.info(f"lease {lease} expired")',
        'logger.info("Lease expired", lease=lease)',
        'logger.info("lease expired.", lease=lease)',
        "logger.log(level, text, lease=lease)",
        'logger.info("lease expired", time=1)',
        'logging.getLogger(__name__).info("lease expired")',
        "logger = logging.getLogger(__name__)",
    ],
)
def test_log_calls_without_fields_are_found(text: str) -> None:
    assert [number for number, _ in check.log_findings(text)] == [1]


@pytest.mark.parametrize(
    "text",
    [
        'logger.info("lease expired", lease=lease)',
        'logger.log(level, "Slurm does not answer", error=error, exc_info=True)',
        'logging.getLogger("trimtab").addFilter(kept)',
        "math.log(2)",
    ],
)
def test_log_calls_with_fields_are_left_alone(text: str) -> None:
    assert list(check.log_findings(text)) == []
