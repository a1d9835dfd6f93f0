"""Which connections of the agent are encrypted."""

from pathlib import Path

import pytest

from trimtab_agent.config import Tls, choose_tls
from trimtab_agent.errors import ConfigError


@pytest.mark.parametrize(
    ("server", "wanted", "plaintext", "encrypted"),
    [
        ("127.0.0.1:8471", False, False, False),
        ("localhost:8471", False, False, False),
        ("[::1]:8471", False, False, False),
        ("127.0.0.1:8471", True, False, True),
        ("tune.example.org:443", False, False, True),
        ("10.0.0.5:8471", False, False, True),
        ("10.0.0.5:8471", False, True, False),
    ],
)
def test_tls_is_used_for_other_machines_by_default(server: str, wanted: bool, plaintext: bool, encrypted: bool) -> None:
    assert choose_tls(server, wanted, plaintext, None, None, None) == (Tls() if encrypted else None)


def test_files_imply_it_and_must_be_there(tmp_path: Path) -> None:
    file = tmp_path / "ca.crt"
    file.touch()
    assert choose_tls("127.0.0.1:1", False, False, file, None, None) == Tls(ca=file)
    for arguments, words in (
        ((False, True, file, None, None), "--plaintext contradicts"),
        ((True, True, None, None, None), "--plaintext contradicts"),
        ((False, False, None, file, None), "must be given together"),
        ((False, False, tmp_path / "none", None, None), "is not a file"),
    ):
        with pytest.raises(ConfigError, match=words):
            choose_tls("127.0.0.1:1", *arguments)
