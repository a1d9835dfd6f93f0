"""Find words that docs/style.md forbids, too long sentences and lines of Markdown, and log calls without fields.

The check of words reads Markdown, docstrings, comments and texts for users in the files that git tracks. It
prints one line for each finding and exits with status 1 if there is one.

    python deploy/checkout/check_words.py [PATH ...]     # without a path: every tracked file
"""

import ast
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LINE = 120
ROW = 300  # a row of a table cannot be broken
SENTENCE = 40  # words

# Files that show the forbidden words.
OWN = ("deploy/checkout/check_words.py", "tests/unit/deploy/test_words.py")

# Phrases in which a word has its technical meaning, with the folder where they are allowed.
EXCEPTIONS: tuple[tuple[str, str], ...] = ()

FORBIDDEN = {
    r"door(?:s|-?bells?)?": "interface, endpoint, or notification",
    r"rooms|room's|(?:this|the|a|upper|lower|each|every) room(?! (?:for|to|that|is|in|left)\b)": "package or module",
    r"(?:the |a |door-)bells?": "event or notification",
    r"rings? (?:for|when|again|at|anyway|the)|rang|is rung": "notify",
    r"(?:tell|tells|told|telling) of|asked and told": "report, say, state",
    r"anew": "again",
    r"(?<!far )(?<!further )apart(?! from)": "separately or alone",
    r"besides?": "also; next to",
    r"of before|(?-i:Those of)|those of (?:before|all|everybody|others)": "name the thing again",
    r"as they were|as it was before": "unchanged",
    r"in vain": "without success",
    r"mend(?:s|ed|ing)?": "repair, fix, correct",
}
WORDS = re.compile("|".join(rf"(?P<w{n}>\b(?:{pattern})\b)" for n, pattern in enumerate(FORBIDDEN)), re.IGNORECASE)
ADVICE = list(FORBIDDEN.values())
OPENING = re.compile(r'"""(What|Who|Whose|Whom|Whether|Whatever|Whoever|Of|Those)\b[^?"]*$', re.MULTILINE)
OPENING_LINE = re.compile(r'"""(What|Who|Whose|Whom|Whether|Whatever|Whoever|Of|Those)\b[^?]*?"""')

SLASHES = re.compile(r"/\*.*?\*/|(?<!:)//[^\n]*", re.DOTALL)
HASHES = re.compile(r"(?:^|(?<=\s))#[^\n]*", re.MULTILINE)
DASHES = re.compile(r"--[^\n]*")
# texts for users in TypeScript: strings, templates and text between tags
TEXTS = re.compile(r"\"[^\"\n]*\"|'[^'\n]*'|`[^`]*`|(?<=>)[^<>{}=;]+(?=[<{])", re.DOTALL)
# code in Markdown: fenced, in a line, indented, and the addresses of links
CODE = re.compile(r"^( {0,3})(```|~~~)[\s\S]*?^\1\2|`[^`\n]+`|^(?: {4}|\t)(?!\s*[-*\d]).*$|\]\([^)\s]*\)", re.MULTILINE)
# What is no sentence in Markdown: fenced code, comments, and the addresses of links.
NO_SENTENCES = re.compile(
    r"^( *)(```|~~~)[\s\S]*?^\1\2|<!--[\s\S]*?-->|(?<=\])\((?:[^()\s]|\([^()\s]*\))*\)", re.MULTILINE
)
# Code in a line is one word.
WORD_OF_CODE = re.compile(r"`(?:[^`\n]|\n(?!\s*\n))+`")
ITEM = re.compile(r"\s*(?:[-*]|\d+\.) ")
ALONE = re.compile(r"\s*[|#]")  # a heading or a row of a table
# A sentence ends with a mark before a space, but not with an abbreviation.
END = re.compile(r"(?<!\be\.g)(?<!\bi\.e)(?<!\bvs)(?<!\bal)(?<!\betc)[.!?][\"')\]*_]*\s+")
# log calls: where they take fields, their names, texts that begin with a name, and the keys of a line in JSON
LOGGING = ("service/", "sdk/", "agents/trimtab_", "demo/")
LEVELS = {"debug", "info", "warning", "error", "exception", "critical", "log"}
LOGS = re.compile(r"\blogg(?:er|ing)\b")
NAMES = re.compile(r"(?:Slurm|Ray|OpenTelemetry|PostgreSQL)\b")
KEYS = {"time", "level", "logger", "message", "process", "msg"}
SUFFIXES = {".py", ".md", ".ts", ".tsx", ".c", ".h", ".proto", ".lua", ".sh", ".yaml", ".yml", ".toml"}


def blank(pattern: re.Pattern[str], text: str) -> str:
    """Return the text with each match replaced by spaces; line breaks stay."""
    return pattern.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)


def only(pattern: re.Pattern[str], text: str) -> str:
    """Return the text with everything but the matches replaced by spaces; line breaks stay."""
    kept = [" " if letter != "\n" else letter for letter in text]
    for match in pattern.finditer(text):
        kept[match.start() : match.end()] = match[0]
    return "".join(kept)


def python_prose(path: Path) -> str:
    """Return comments and strings of several words, each on its own line of the file."""
    lines: dict[int, list[str]] = {}
    with path.open("rb") as file:
        for token in tokenize.tokenize(file.readline):
            kind = tokenize.tok_name[token.type]
            if kind == "COMMENT" or (kind in {"STRING", "FSTRING_MIDDLE"} and token.string.count(" ") > 1):
                for number, line in enumerate(token.string.splitlines(), token.start[0]):
                    lines.setdefault(number, []).append(line)
    return "\n".join(" ".join(lines.get(number, ())) for number in range(1, max(lines, default=0) + 1))


def prose(path: Path, text: str) -> str:
    """Return what people read in a file. The rest of each line is blank."""
    match path.suffix:
        case ".md":
            return blank(CODE, text)
        case ".py":
            return python_prose(path)
        case ".ts" | ".tsx":
            return only(SLASHES, text) + "\n" if path.name.endswith(".d.ts") else only(SLASHES_OR_TEXTS, text)
        case ".c" | ".h" | ".proto":
            return only(SLASHES, text)
        case ".lua":
            return only(DASHES, text)
        case _:
            return only(HASHES, text)


SLASHES_OR_TEXTS = re.compile(f"{SLASHES.pattern}|{TEXTS.pattern}", re.DOTALL)


def sentences(text: str) -> Iterator[tuple[int, int]]:
    """Yield the line and the number of words of each sentence of Markdown.

    A table and a block of code have none, and an item of a list ends a sentence. An address of a link is no word.
    """
    text = WORD_OF_CODE.sub(lambda match: "`" + re.sub(r"[^\n]", "x", match[0][1:]), blank(NO_SENTENCES, text))
    parts: list[tuple[int, str]] = []
    listed = False
    open_part = False
    for number, line in enumerate(text.splitlines(), 1):
        item = ITEM.match(line)
        listed = bool(item) or (listed and (not line.strip() or line.startswith(" ")))
        if not line.strip() or ALONE.match(line) or (line.startswith("    ") and not listed):
            open_part = False
            if line.lstrip().startswith("#"):
                parts.append((number, line))
        elif open_part and not item:
            first, before = parts[-1]
            parts[-1] = first, f"{before}\n{line}"
        else:
            parts.append((number, line[item.end() :] if item else line))
            open_part = True
    for number, part in parts:
        begin = 0
        for end in (*(match.end() for match in END.finditer(part)), len(part)):
            words = sum(any(map(str.isalnum, word)) for word in part[begin:end].split())
            yield number + part.count("\n", 0, begin), words
            begin = end


def log_findings(text: str) -> Iterator[tuple[int, str]]:
    """Yield line numbers of log calls that are not one constant text with fields, and what is wrong there."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Assign) and ast.unparse(node.value).startswith("logging.getLogger("):
            yield node.lineno, "use the class Logger of logger.py"
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in LEVELS):
            continue
        source = ast.unparse(node.func.value)
        if source.startswith("logging"):
            yield node.lineno, f"{source}.{node.func.attr}: use the class Logger of logger.py"
        elif source == "logger":
            texts = node.args[1:] if node.func.attr == "log" else node.args
            said = texts[0].value if len(texts) == 1 and isinstance(texts[0], ast.Constant) else None
            if not isinstance(said, str) or "%" in said:
                yield node.lineno, "a log call has one constant text; give the values as keyword arguments"
            elif said.endswith(".") or not (said[:1].islower() or NAMES.match(said)):
                yield node.lineno, "the text of a log call begins in lower case and has no full stop"
            for name in sorted(KEYS & {keyword.arg or "" for keyword in node.keywords}):
                yield node.lineno, f'no field of a log call may be called "{name}"'


def findings(path: Path, name: str) -> Iterator[tuple[int, str]]:
    """Yield line numbers and what is wrong there."""
    text = path.read_text(encoding="utf-8", errors="replace")
    if path.suffix == ".md":
        for number, line in enumerate(text.splitlines(), 1):
            most = ROW if line.startswith("|") else LINE
            if len(line) > most and not re.fullmatch(r"\S*\s*\S*\]\(\S+\)\S*|\S*https?://\S+", line.strip()):
                yield number, f"the line has {len(line)} characters; the most are {most}"
        for number, words in sentences(text):
            if words > SENTENCE:
                yield number, f"the sentence has {words} words; the most are {SENTENCE}"
    if path.suffix == ".py":
        for pattern in (OPENING, OPENING_LINE):
            for match in pattern.finditer(text):
                yield (
                    text.count("\n", 0, match.start()) + 1,
                    f'the docstring begins with "{match[1]}"',
                )
    if path.suffix == ".py" and name.startswith(LOGGING) and LOGS.search(text):
        yield from log_findings(text)
    # tokenizing is slow, and most files have none of the words
    if WORDS.search(text):
        allowed = [phrase for folder, phrase in EXCEPTIONS if name.startswith(folder)]
        for number, line in enumerate(prose(path, text).splitlines(), 1):
            for phrase in allowed:
                line = line.replace(phrase, "")
            for match in WORDS.finditer(line):
                advice = ADVICE[int((match.lastgroup or "w0")[1:])]
                yield number, f'"{match[0]}": write {advice}'


def main() -> int:
    """Check the named files or all that git tracks; return the exit status."""
    tracked = subprocess.run(
        ["git", "ls-files", "-z", *sys.argv[1:]], cwd=ROOT, check=True, capture_output=True, text=True
    )
    found = 0
    for name in tracked.stdout.split("\0"):
        path = ROOT / name
        if name in OWN or not path.is_file():
            continue
        if path.suffix in SUFFIXES or path.name in {"Makefile", "Dockerfile"}:
            for number, message in findings(path, name):
                print(f"{name}:{number}: {message}")
                found += 1
    if found:
        print(f"{found} findings. docs/style.md says which words to use.")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
