"""The fields of the agent's log lines."""

import logging

import pytest

from trimtab_agent.logger import Logger, Message

logger = Logger("trimtab_agent.test_logger")


def test_fields_follow_the_text(caplog: pytest.LogCaptureFixture) -> None:
    logger.warning("lease expired", lease="l-1", trial=0, reason="", study=None, error=OSError("no\nway = out"))
    (record,) = caplog.records
    assert record.getMessage() == r'lease expired lease=l-1 trial=0 error="no\nway = out"'
    assert record.funcName == "test_fields_follow_the_text"
    assert isinstance(record.msg, Message)
    assert record.msg.text == "lease expired"
    assert record.msg.fields["trial"] == 0


def test_values_stay_on_one_line(caplog: pytest.LogCaptureFixture) -> None:
    logger.error("sent", path="/a\u2028b", quoted='"', name="große Datei")
    assert caplog.messages == [r'sent path="/a\u2028b" quoted="\"" name="große Datei"']


def test_a_traceback_is_kept(caplog: pytest.LogCaptureFixture) -> None:
    try:
        raise ValueError("no")
    except ValueError:
        logger.exception("the dry run failed", component="c")
    (record,) = caplog.records
    assert record.exc_info
    assert record.getMessage() == "the dry run failed component=c"


def test_a_line_below_the_level_costs_no_text(caplog: pytest.LogCaptureFixture) -> None:
    class Costly:
        def __str__(self) -> str:
            raise AssertionError

    with caplog.at_level(logging.INFO):
        logger.debug("done", value=Costly())
    assert not caplog.records
