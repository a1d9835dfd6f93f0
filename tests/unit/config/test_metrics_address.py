"""Addresses of metrics that a process of several cannot have: the command ends at once and says which one."""

from __future__ import annotations

import socket

import pytest
from typer.testing import CliRunner

from service.main import app


@pytest.mark.parametrize("command", [["worker"], ["grpc", "--processes", "2"]])
def test_a_taken_address_of_a_later_process_ends_the_command(command: list[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = CliRunner().invoke(app, [*command, "--metrics", f"127.0.0.1:{port - 1}"])
    assert done.exit_code == 2
    assert f"--metrics: '127.0.0.1:{port}' is not available" in done.output
    assert "Address already in use" in done.output


def test_what_is_no_address_ends_the_command() -> None:
    done = CliRunner().invoke(app, ["worker", "--metrics", "9470"])
    assert (done.exit_code, "'9470' is not allowed. Use HOST:PORT" in done.output) == (2, True)
