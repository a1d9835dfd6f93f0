"""Bounded output."""

import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from trimtab_agent.supervisor.capture import Capture, last_lines


@given(st.lists(st.binary(max_size=70), max_size=12), st.integers(1, 40))
def test_head_and_tail_of_any_output(pieces: list[bytes], half: int) -> None:
    whole = b"".join(pieces)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "out"
        capture = Capture(str(path), 2 * half)
        for piece in pieces:
            capture.add(piece)
        capture.close()
        kept = path.read_bytes()
    if len(whole) <= 2 * half:
        assert kept == whole
    else:
        mark = b"\n[... %d bytes omitted ...]\n" % (len(whole) - 2 * half)
        assert kept == whole[:half] + mark + whole[-half:]


def test_the_head_can_be_read_while_it_comes(tmp_path: Path) -> None:
    capture = Capture(str(tmp_path / "out"), 100)
    capture.add(b"at once")
    assert (tmp_path / "out").read_bytes() == b"at once"
    capture.close()


def test_last_lines() -> None:
    assert last_lines(b"1\n2\n3\n\n", lines=2) == "2\n3"
    assert last_lines(b"\xff\xfe") == "\ufffd\ufffd"
    assert last_lines(b"") == ""


def test_messages_have_no_nul() -> None:
    assert last_lines(b"core\0 dumped\n\0\n") == "core dumped"
