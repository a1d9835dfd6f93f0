"""Tests of a data node: a buffer on one host, which processes on other hosts use through TCP."""

import errno
import hashlib
import os
import socket
import struct
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.agent.workloads.burst_buffer.hosts import CLIENTS, DataNode, Host, alive, hosts
from tests.agent.workloads.burst_buffer.place import SMALL, Place, ready
from tests.agent.workloads.shared import MIB, run
from tests.factories.patience import PATIENCE, wait_for
from tests.factories.ports import free_port

PYTHON = [sys.executable, "-ISc"]
SLOW = ["--latency", 200000]
"""With these options little of what was written is in the directory yet."""


@pytest.fixture
def node(place: Place) -> Iterator[DataNode]:
    """A data node that a test starts, with clients on two hosts."""
    with hosts() as (own, clients):
        made = DataNode(place, own, clients)
        try:
            yield made
        finally:
            made.end()


WRITE = """
import os, sys
file = os.open(sys.argv[1] + "/file", os.O_RDWR | os.O_CREAT)
for number in range(24): os.write(file, bytes([number + 1]) * (1 << 20))
print("ready", flush=True)
sys.stdin.readline()
"""
CONTENT = hashlib.sha256(b"".join(bytes([number + 1]) * MIB for number in range(24))).hexdigest()
READ = """
import hashlib, sys
print(hashlib.sha256(open(sys.argv[1] + "/file", "rb", buffering=0).read()).hexdigest())
"""


def test_a_second_client_reads_what_the_first_has_written(node: DataNode) -> None:
    """The data is more than the RAM cache holds, and the directory is slow."""
    node.start(*SMALL, *SLOW, "--flash-cache-size", 64)
    writer = node.popen(0, *PYTHON, WRITE, node.place.target)
    assert ready(writer)
    file = node.place.target / "file"
    assert file.stat().st_size == 24 * MIB
    for client in range(CLIENTS):
        done = node.run(client, *PYTHON, READ, node.place.target)
        assert (done.returncode, done.stdout.strip(), done.stderr) == (0, CONTENT, "")
    # when a client's command has ended, all is in the directory
    assert hashlib.sha256(file.read_bytes()).hexdigest() == CONTENT
    writer.communicate("end\n", timeout=PATIENCE)
    assert writer.returncode == 0
    node.stop()


ALTERNATE = """
import os, sys
folder, me, clients = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
file = os.open(folder + "/pages", os.O_RDWR | os.O_CREAT)
log = os.open(folder + "/log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
print("ready", flush=True)
sys.stdin.readline()
for page in range(me, 2000, clients):
    os.pwrite(file, b"%4095d\\n" % page, page * 4096)
    if page % 10 < clients: os.write(log, b"%7d\\n" % page)
    if page % 500 < clients: os.fsync(file)
    assert os.pread(file, 4096, page * 4096) == b"%4095d\\n" % page
"""


def test_clients_write_to_one_file_at_the_same_time(node: DataNode) -> None:
    """They share blocks, and append to one log, of which no line is lost."""
    node.start(*SMALL)
    writers = [node.popen(number, *PYTHON, ALTERNATE, node.place.target, number, CLIENTS) for number in range(CLIENTS)]
    assert all(ready(writer) for writer in writers)
    for writer in writers:
        assert writer.stdin
        writer.stdin.write("go\n")
        writer.stdin.flush()
    for writer in writers:
        _, reported = writer.communicate(timeout=PATIENCE)
        assert (writer.returncode, reported) == (0, "")
    pages = (node.place.target / "pages").read_bytes()
    assert [int(pages[page * 4096 : page * 4096 + 4096]) for page in range(2000)] == list(range(2000))
    logged = [int(line) for line in (node.place.target / "log").read_text().splitlines()]
    assert sorted(logged) == [page for page in range(2000) if page % 10 < CLIENTS]
    node.stop()


def test_threads_and_processes_of_all_clients_share_the_node(node: DataNode) -> None:
    node.start(*SMALL, "--polling-threads", 3)
    running = []
    for client in range(CLIENTS):
        folder = node.place.target / str(client)
        folder.mkdir()
        running.append(node.popen(client, node.place.built / "exercise", folder, client + 1))
    for process in running:
        _, reported = process.communicate(timeout=PATIENCE)
        assert (process.returncode, reported) == (0, "")
    node.stop()


LOSES = """
import errno, os, sys
folder, flags = sys.argv[1], os.O_RDWR | os.O_CREAT
closed, kept = os.open(folder + "/closed", flags), os.open(folder + "/kept", flags)
os.write(closed, b"closed" * 50_000)
os.close(closed)
os.write(kept, b"lost" * 50_000)
print("ready", flush=True)
def fails(call):
    try: call()
    except OSError as error: assert error.errno == errno.EIO, error
    else: raise AssertionError
sys.stdin.readline()
fails(lambda: os.write(kept, b"more"))
fails(lambda: os.pread(kept, 5, 0))
fails(lambda: os.read(os.open(folder + "/closed", os.O_RDONLY), 5))
print("ready", flush=True)
sys.stdin.readline()
assert os.read(os.open(folder + "/closed", os.O_RDONLY), 400_000) == b"closed" * 50_000
fails(lambda: os.fsync(kept))
fails(lambda: os.close(kept))
again = os.open(folder + "/kept", flags | os.O_TRUNC)
os.write(again, b"again")
os.fsync(again)
"""


@pytest.mark.parametrize("guardian", [False, True])
def test_a_killed_data_node_loses_nothing_that_was_closed(node: DataNode, guardian: bool) -> None:
    """Until a data node is there again every use of the files is an error, since a client cannot see what was lost."""
    node.start(*SLOW)
    client = node.popen(0, *PYTHON, LOSES, node.place.target)
    assert ready(client)
    for process in [node.daemon, *([node.guardian] if guardian else [])]:
        process.suspend()
    if guardian:
        node.guardian.kill()
    node.daemon.kill()
    # without a guardian the next start recovers the file level
    wait_for(lambda: not alive(node.guardian) and not alive(node.daemon), "both have ended")
    assert (node.place.buffer / "journal").exists() == guardian
    assert client.stdin
    client.stdin.write("go on\n")
    client.stdin.flush()
    assert ready(client)
    done = node.run(1, "true")
    assert (done.returncode, "cannot reach the data node" in done.stderr) == (3, True)
    node.start()
    _, reported = client.communicate("go on\n", timeout=PATIENCE)
    assert client.returncode == 3, reported
    assert "Traceback" not in reported
    assert "was started again; data that was not synced may be lost" in reported
    done = node.run(1, "cat", node.place.target / "closed", node.place.target / "kept")
    assert (done.returncode, done.stdout) == (0, "closed" * 50_000 + "again")
    node.stop()
    assert (node.place.target / "closed").read_bytes() == b"closed" * 50_000


UNSEEN = """
import os, sys
folder = sys.argv[1]
os.write(os.open(folder + "/moved", os.O_WRONLY | os.O_CREAT), b"old")
moved, linked, deleted = (os.open(f"{folder}/{name}", os.O_RDONLY) for name in ("moved", "linked", "deleted"))
print("ready", flush=True)
sys.stdin.readline()
assert os.read(moved, 9) == b"new"
assert os.read(deleted, 9) == b"deleted"
try: os.read(linked, 9)
except OSError as error: print(error.errno)
"""


def test_files_that_other_clients_rename_or_delete(node: DataNode) -> None:
    """A file is the same under a new name. If the data node cannot find it by any name, its use is an error, since
    others may write to it; a file without a name has no such others.
    """
    node.start(*SLOW)
    for name in ("linked", "deleted"):
        (node.place.target / name).write_text(name)
    first = node.popen(0, *PYTHON, UNSEEN, node.place.target)
    assert ready(first)
    change = (
        'cd "$0"; mv moved new; printf new | dd of=new conv=notrunc status=none; ln linked other; rm linked deleted'
    )
    assert node.run(1, "sh", "-c", change, node.place.target).returncode == 0
    printed, reported = first.communicate("go on\n", timeout=PATIENCE)
    assert (first.returncode, printed, reported) == (0, f"{errno.ESTALE}\n", "")
    node.stop()
    assert (node.place.target / "new").read_text() == "new"


def test_a_client_with_another_directory_is_refused(node: DataNode) -> None:
    other = node.place.folder / "other"
    other.mkdir()
    for folder in (other, node.place.target):
        (folder / "file").write_text(f"in {folder.name}")
    node.start()
    done = node.run(0, "cat", other / "file", directory=other)
    assert (done.returncode, done.stdout) == (1, "")
    assert os.strerror(errno.ESTALE) in done.stderr
    node.stop()


def test_the_number_of_connections_is_bounded(node: DataNode) -> None:
    """A thread more than that has EMFILE, and everything else goes on."""
    node.start("--connections", 2)
    script = """
import errno, os, sys, threading
def use(number, errors):
    try: os.write(os.open(f"{sys.argv[1]}/{number}", os.O_WRONLY | os.O_CREAT), b"kept")
    except OSError as error: errors.append(error.errno)
    started.wait(); ended.wait()
started, ended, errors = threading.Barrier(4), threading.Barrier(4), []
threads = [threading.Thread(target=use, args=(number, errors)) for number in range(3)]
for thread in threads: thread.start()
started.wait()
print(errors == [errno.EMFILE])
ended.wait()
"""
    done = node.run(0, *PYTHON, script, node.place.target)
    assert done.stdout == "True\n", done.stderr
    done = node.run(1, "true")
    assert (done.returncode, done.stderr) == (0, "")
    node.stop()


# --- strangers: they speak the protocol of node.h

MAGIC = struct.pack("=Q", 0x3152554254535542)
REQUEST = struct.Struct("=IIQqq")
ATTACH, READ_OPERATION, OTHER_FILE = 1, 2, -5003


def greet(node: DataNode, token: bytes) -> tuple[socket.socket, int]:
    """Connect on this host; return the connection and the data node's answer to a token."""
    connection = socket.create_connection(("127.0.0.1", node.port), PATIENCE)
    connection.sendall(MAGIC + token)
    return connection, struct.unpack("=qQ", connection.recv(16, socket.MSG_WAITALL))[0]


@pytest.fixture
def local(place: Place) -> Iterator[DataNode]:
    """A data node that this process can reach."""
    made = DataNode(place, Host(), [Host()])
    try:
        yield made
    finally:
        made.end()


def token_of(node: DataNode) -> bytes:
    """Return the token of a data node."""
    return node.token.read_bytes().strip()


def test_strangers_are_refused_and_bounded(local: DataNode) -> None:
    """A wrong token is an error at once. Connections that say nothing end by themselves, so that clients get in."""
    local.start()
    for wrong in (b"0" * 64, token_of(local)[:-1] + b"-"):
        connection, answer = greet(local, wrong)
        assert answer == -errno.EACCES
        assert connection.recv(1) == b""
    silent = [socket.create_connection(("127.0.0.1", local.port), PATIENCE) for _ in range(40)]
    done = local.run(0, "true")
    while done.returncode:  # it waits as long as it takes to connect; the machine may be busy
        assert "Connection timed out" in done.stderr or "temporarily unavailable" in done.stderr
        done = local.run(0, "true")
    assert all(one.recv(1) == b"" for one in silent)
    local.stop()


def test_a_client_cannot_leave_the_directory(local: DataNode) -> None:
    """It cannot do so even if it speaks the protocol itself; nor does a wrong request disturb the others."""
    local.start()
    secret = local.place.folder / "secret"
    secret.write_text("secret")
    (local.place.target / "link").symlink_to(secret)
    (local.place.target / "open").write_text("open")
    connection, answer = greet(local, token_of(local))
    assert answer == 0

    def attach(name: bytes, file: Path) -> int:
        data = struct.pack("=QQ", file.stat().st_ino, 0) + name + b"\0"
        connection.sendall(REQUEST.pack(ATTACH, len(data), 0, 0, 0) + data)
        result: int = REQUEST.unpack(connection.recv(REQUEST.size, socket.MSG_WAITALL))[4]
        return result

    assert attach(b"open", local.place.target / "open") > 0
    for name in (b"../secret", bytes(secret), b"link", b"open/../../secret", b"none"):
        assert attach(name, secret) == OTHER_FILE
    # an unfinished name
    connection.sendall(REQUEST.pack(ATTACH, 20, 0, 0, 0) + b"x" * 20)
    assert REQUEST.unpack(connection.recv(REQUEST.size, socket.MSG_WAITALL))[4] == -errno.EINVAL
    # more than the area holds
    connection.sendall(REQUEST.pack(READ_OPERATION, MIB + 1, 0, 0, 0))
    assert connection.recv(1) == b""
    assert local.run(0, "cat", local.place.target / "open").stdout == "open"
    local.stop()


def test_a_client_that_stops_in_the_middle_holds_up_nobody(local: DataNode) -> None:
    """Its request is never carried out, and the data node ends without it."""
    local.start("--polling-threads", 1, "--worker-threads", 1)
    connection, answer = greet(local, token_of(local))
    assert answer == 0
    connection.sendall(REQUEST.pack(ATTACH, 1000, 0, 0, 0) + b"x" * 10)
    (local.place.target / "file").write_text("content")
    assert local.run(0, "cat", local.place.target / "file").stdout == "content"
    local.stop()
    assert connection.recv(1) == b""


def test_a_token_that_others_may_read_is_refused(local: DataNode) -> None:
    local.start()
    assert local.token.stat().st_mode & 0o777 == 0o600
    for mode, content, message in (
        (0o640, token_of(local), "a file that only you may use (mode 0600)"),
        (0o600, b"short", "the file that --listen has made, with 64 characters"),
    ):
        wrong = local.token.with_name("wrong")
        wrong.write_bytes(content)
        wrong.chmod(mode)
        line = ["wrong" if word == "token" else word for word in local.line(0, "true")]
        line = [str(wrong) if word == str(local.token) else word for word in line]
        done = run(line)
        assert (done.returncode, done.stderr) == (3, f"burst: --token: '{wrong}' is not allowed. Use {message}.\n")
    local.stop()


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["run", "--node", "127.0.0.1:1", "/tmp", "true"], 2, "usage: burst run"),
        (["run", "--node", "127.0.0.1:1", "--token", "TOKEN", "--buffer", "BUFFER", "/tmp", "true"], 2, "usage: "),
        (["start", "--node", "127.0.0.1:1", "--token", "TOKEN", "/tmp"], 2, "usage: burst run"),
        (["start", "--listen", "127.0.0.1:1", "--buffer", "BUFFER", "/tmp"], 2, "usage: burst run"),
        (["stop", "--node", "127.0.0.1:1", "--token", "TOKEN"], 2, "usage: burst run"),
        (
            ["run", "--node", "nowhere", "--token", "TOKEN", "/tmp", "true"],
            2,
            "--node: 'nowhere' is not allowed. Use ADDRESS:PORT",
        ),
        (
            ["start", "--listen", "127.0.0.1:x", "--token", "TOKEN", "--buffer", "BUFFER", "/tmp"],
            2,
            "--listen: '127.0.0.1:x' is not allowed. Use ADDRESS:PORT of this host",
        ),
        (["run", "--node", "127.0.0.1:1", "--token", "TOKEN", "/tmp", "true"], 3, "cannot read the token "),
    ],
)
def test_wrong_options_of_data_nodes_are_refused(place: Place, arguments: list[str], status: int, message: str) -> None:
    names = {"TOKEN": str(place.folder / "token"), "BUFFER": str(place.buffer)}
    done = run([place.built / "burst", *(names.get(word, word) for word in arguments)])
    assert done.returncode == status
    assert message in done.stderr


def test_an_address_in_use_and_a_node_that_is_not_there(place: Place) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        own = ["--listen", f"127.0.0.1:{port}", "--token", place.folder / "token"]
        done = run([place.built / "burst", "start", *own, "--buffer", place.buffer, place.target])
    assert (done.returncode, done.stderr) == (
        3,
        "burst: cannot listen for clients on other hosts: Address already in use\n",
    )
    assert not (place.buffer / "flash").exists()
    own = ["--node", f"127.0.0.1:{free_port()}", "--token", place.folder / "token"]
    done = run([place.built / "burst", "run", *own, place.target, "true"])
    assert (done.returncode, "Connection refused" in done.stderr) == (3, True)
