"""Where address and token come from, and where they are kept."""

from pathlib import Path

import pytest

import trimtab
from trimtab._internal.connection import login
from trimtab._internal.connection.login import Address, Login
from trimtab.errors import InvalidInput, Unauthenticated


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.delenv("TRIMTAB_URL", raising=False)
    monkeypatch.delenv("TRIMTAB_TOKEN", raising=False)
    return tmp_path


@pytest.mark.parametrize(
    ("text", "target", "secure"),
    [
        ("grpcs://host:443", "host:443", True),
        ("grpcs://host", "host:8471", True),
        ("[::1]:5", "[::1]:5", False),
        ("[::1]", "[::1]:8471", False),
    ],
)
def test_addresses(text: str, target: str, secure: bool) -> None:
    address = Address.parse(text)
    assert address == Address(target, secure)
    assert Address.parse(str(address)) == address


@pytest.mark.parametrize("text", ["http://host:8470", "host:0", "host:x", "host:99999", "::1", "a:1/x", ":1", ""])
def test_invalid_addresses_are_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="HOST:PORT") as caught:
        Address.parse(text)
    assert caught.value.data["value"] == text


def test_arguments_go_before_the_environment_and_that_before_the_file(
    monkeypatch: pytest.MonkeyPatch, programs_start: None
) -> None:
    login.store(Login(Address.parse("kept:1"), "kept-token"))
    assert login.find() == Login(Address.parse("kept:1"), "kept-token")
    monkeypatch.setenv("TRIMTAB_URL", "grpc://env:2")
    monkeypatch.setenv("TRIMTAB_TOKEN", " env-token\n")
    assert login.find() == Login(Address("env:2", secure=False), "env-token")
    assert login.find("arg:3", "arg-token") == Login(Address.parse("arg:3"), "arg-token")


def test_a_stored_token_goes_nowhere_but_where_it_belongs(monkeypatch: pytest.MonkeyPatch) -> None:
    login.store(Login(Address.parse("one:1"), "token-1"))
    login.store(Login(Address.parse("two:2"), "token-2"))
    assert login.find().token == "token-2"
    assert login.find("one:1").token == "token-1"
    with pytest.raises(Unauthenticated, match="trimtab login grpcs://three:3"):
        login.find("three:3")
    monkeypatch.setenv("TRIMTAB_URL", "grpc://one:1")
    with pytest.raises(Unauthenticated):
        login.find()


def test_the_file_is_for_its_user_alone(home: Path) -> None:
    path = Path(login.store(Login(Address.parse("one:1"), "token-1")))
    assert path == home / "trimtab" / "credentials.json"
    assert path.stat().st_mode & 0o777 == 0o600
    path.chmod(0o644)
    login.store(Login(Address.parse("one:1"), "token-2"))
    assert path.stat().st_mode & 0o777 == 0o600
    assert [item.name for item in path.parent.iterdir()] == ["credentials.json"]


def test_a_relative_config_folder_is_ignored(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert login.location() == tmp_path / ".config" / "trimtab" / "credentials.json"


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"default": "a:1", "logins": []}', "\0"])
def test_a_broken_file_is_named(home: Path, content: str) -> None:
    path = home / "trimtab" / "credentials.json"
    path.parent.mkdir()
    path.write_text(content)
    with pytest.raises(InvalidInput, match=r"credentials\.json cannot be read .* remove it"):
        login.find()


@pytest.mark.parametrize("token", ["", " ", "a b", "a\nb", "té", "a\x00"])
def test_invalid_tokens_are_refused_and_not_shown(token: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        login.clean(token)
    assert caught.value.data["value"] == "…"


def test_a_login_does_not_show_its_token() -> None:
    assert "secret" not in repr(Login(Address.parse("one:1"), "secret"))


def test_the_error_for_a_missing_token_gives_instructions() -> None:
    with pytest.raises(Unauthenticated, match=r"pass token=\.\.\., set TRIMTAB_TOKEN, or run `trimtab login") as caught:
        trimtab.Client()
    assert caught.value.code == "missing_token"
