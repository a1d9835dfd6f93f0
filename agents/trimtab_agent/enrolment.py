"""The token of an enrolment: where it comes from, and how it stays out of the list of processes."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from trimtab_agent.errors import ConfigError
from trimtab_agent.logger import Logger

VARIABLE = "TRIMTAB_ENROL_TOKEN"
_OPTION = "--enrol"
# It fits into a pipe that nobody reads yet.
_LONGEST = 1000

logger = Logger(__name__)


def hide(token: str) -> None:
    """Start this program again with the token on its standard input instead of in its arguments, which all users see.

    The process keeps its number.

    Raises:
        ConfigError: the token is too long.
    """
    if len(token) > _LONGEST:
        raise ConfigError(f"{_OPTION}: a token has at most {_LONGEST} characters, and this text has {len(token)}")
    reader, writer = os.pipe()
    os.write(writer, token.encode())
    os.close(writer)
    os.dup2(reader, sys.stdin.fileno())
    os.close(reader)
    words = [sys.executable, *_without_token(sys.orig_argv[1:])]
    os.execv(sys.executable, words)  # the words of this process itself  # nosec B606


def _without_token(words: Sequence[str]) -> list[str]:
    return [
        "-" if before == _OPTION else f"{_OPTION}=-" if word.startswith(f"{_OPTION}=") else word
        for before, word in zip(["", *words], words, strict=False)
    ]


def find(given: str | None, file: Path | None) -> str | None:
    """Return the token of --enrol (`-`: standard input), --enrol-file or TRIMTAB_ENROL_TOKEN, in this order, or None.

    A file that does not exist holds no token, so that an administrator may delete it after its use. The variable is
    removed, so that no trial inherits it.

    Raises:
        ConfigError: both options are given, or the file cannot be read.
    """
    variable = os.environ.pop(VARIABLE, None)
    if given is not None and file is not None:
        raise ConfigError(f"{_OPTION} and --enrol-file are both given; give one of them")
    text = variable
    if given is not None:
        text = sys.stdin.readline() if given == "-" else given
    elif file is not None:
        text = _read(file)
    return (text or "").strip() or None


def _read(file: Path) -> str:
    try:
        with file.open(encoding="utf-8") as opened:
            if os.fstat(opened.fileno()).st_mode & 0o077:
                logger.warning("other users may read the enrolment token, use chmod 600", path=file)
            return opened.readline(_LONGEST)
    except FileNotFoundError:
        logger.info("the file of --enrol-file does not exist, no token is used", path=file)
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"--enrol-file {file} cannot be read: {error}") from None
