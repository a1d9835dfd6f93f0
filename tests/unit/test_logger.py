"""The fields of log lines, in the logger of the service, the agent and the SDK."""

import logging
from pathlib import Path
from types import ModuleType

import pytest

import service.logger
import trimtab._internal.logger
import trimtab_agent.logger

MODULES: list[ModuleType] = [service.logger, trimtab_agent.logger, trimtab._internal.logger]


@pytest.fixture(params=MODULES, ids=[module.__name__ for module in MODULES])
def module(request: pytest.FixtureRequest) -> ModuleType:
    return request.param  # type: ignore[no-any-return]


def test_the_three_files_are_equal() -> None:
    assert len({Path(str(module.__file__)).read_text() for module in MODULES}) == 1


def test_fields_follow_the_text(module: ModuleType, caplog: pytest.LogCaptureFixture) -> None:
    error = OSError("no\nway = out")
    module.Logger("tests").warning("lease expired", lease="l-1", trial=0, reason="", study=None, error=error)
    (record,) = caplog.records
    assert record.getMessage() == r'lease expired lease=l-1 trial=0 error="no\nway = out"'
    assert record.funcName == "test_fields_follow_the_text"
    assert isinstance(record.msg, module.Message)
    assert record.msg.text == "lease expired"
    assert record.msg.fields == {"lease": "l-1", "trial": 0, "error": error}


def test_values_stay_on_one_line(module: ModuleType, caplog: pytest.LogCaptureFixture) -> None:
    module.Logger("tests").error("sent", path="/a\u2028b", quoted='"', name="große Datei")
    assert caplog.messages == [r'sent path="/a\u2028b" quoted="\"" name="große Datei"']


def test_a_traceback_is_kept(module: ModuleType, caplog: pytest.LogCaptureFixture) -> None:
    try:
        raise ValueError("no")
    except ValueError:
        module.Logger("tests").exception("the dry run failed", component="c")
    (record,) = caplog.records
    assert record.exc_info
    assert record.getMessage() == "the dry run failed component=c"


def test_a_line_below_the_level_makes_no_text(module: ModuleType, caplog: pytest.LogCaptureFixture) -> None:
    class Costly:
        def __str__(self) -> str:
            raise AssertionError

    with caplog.at_level(logging.INFO):
        module.Logger("tests").debug("done", value=Costly())
    assert not caplog.records
