"""Backup and restore of embedded mode: a drill with clients and an agent, and what can go wrong."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import psycopg
import pytest

import trimtab
from service.embedded.archive import DUMP, MANIFEST
from service.embedded.postgres import Postgres, programs
from service.embedded.processes import stop
from tests.factories.agent import APPLICATION, COMPONENT, RealAgent, value, write_component
from tests.factories.patience import PATIENCE, wait_for
from tests.factories.service import EmbeddedService
from tests.marks import slow_cases
from trimtab.study import Study

TIMES = {"TRIMTAB_LEASE_SECONDS": "6", "TRIMTAB_HEARTBEAT_SECONDS": "1"}


def command(*words: object) -> list[str]:
    return [sys.executable, "-m", "service.main", *map(str, words)]


def run(*words: object, code: int = 0) -> str:
    """Run `trimtab-service WORDS` and return its output; the words of its errors on one line."""
    done = subprocess.run(command(*words), capture_output=True, text=True, check=False, timeout=PATIENCE)
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout if code == 0 else " ".join(done.stderr.split())


class Teller:
    """A script that tells results one after the other, and notes each that the service has acknowledged."""

    def __init__(self, study: Study) -> None:
        self.told: dict[int, float] = {}
        self._study, self._end = study, threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._end.is_set():
            [trial] = self._study.ask(1)
            result = float(trial.params["x"]) * 2
            self._study.tell(trial, result)
            self.told[trial.number] = result

    def stop(self) -> None:
        self._end.set()
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive()


def states(study: Study) -> list[str]:
    return [trial.state for trial in study.trials()]


def test_drill(tmp_path: Path, programs_start: None) -> None:
    file, restored, runs = tmp_path / "trimtab.backup", tmp_path / "restored", tmp_path / "runs"
    service = EmbeddedService(tmp_path / "service", TIMES)
    with service, trimtab.Client(service.grpc_address, token=service.token) as administrator:
        _, secret = administrator.create_token("script", ["read", "tune"])
        enrolment = administrator.enrol_agent()
        components = write_component(tmp_path / "components", runs, delay=1.5)
        with (
            trimtab.Client(service.grpc_address, token=secret) as client,
            RealAgent(tmp_path, service.grpc_address, enrolment, components),
        ):
            told = client.create_study(
                "told", space=[trimtab.Float("x", 0, 1)], objectives=[trimtab.Minimize("y")], algorithm="random"
            )
            run_study = client.create_study(
                "run",
                objectives=[trimtab.Minimize("value")],
                algorithm="random",
                component=COMPONENT,
                final_check=False,
                application=APPLICATION,
                max_trials=5,
            )
            teller = Teller(told)
            wait_for(lambda: states(run_study)[:2] == ["COMPLETED", "ACTIVE"], "the second trial is active")
            wait_for(lambda: len(teller.told) > 5, "some results are told")
            before = dict(teller.told)

            run("backup", file, "--data-dir", service.data_dir)
            assert file.stat().st_mode & 0o777 == 0o600
            after = len(teller.told)
            wait_for(lambda: len(teller.told) > after, "the service goes on")
            teller.stop()
            service.kill()

            run("restore", file, "--data-dir", restored)
            service.data_dir = restored
            service.start()

            kept = {trial.number: trial.metrics["y"] for trial in told.trials() if trial.state == "COMPLETED"}
            assert before.items() <= kept.items()
            assert kept.items() <= teller.told.items()
            assert run_study.wait(timeout=PATIENCE, progress=False) == "COMPLETED"
            for trial in run_study.trials():
                assert trial.state == "COMPLETED"
                assert trial.metrics == {"value": pytest.approx(value(trial.params))}
            assert [agent.name for agent in administrator.list_agents()] == ["test-agent"]


@pytest.fixture(scope="module")
def backup(embedded_service: EmbeddedService, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a backup that tests read."""
    file = tmp_path_factory.mktemp("backup") / "trimtab.backup"
    run("backup", file, "--data-dir", embedded_service.data_dir)
    return file


def rewritten(backup: Path, file: Path, change: Callable[[str, bytes], bytes | None]) -> Path:
    """Write a copy of a backup whose members `change` has changed or, by None, left out."""
    with zipfile.ZipFile(backup) as old, zipfile.ZipFile(file, "w") as new:
        for name in old.namelist():
            content = change(name, old.read(name))
            if content is not None:
                new.writestr(name, content)
    return file


def in_manifest(backup: Path, file: Path, **fields: object) -> Path:
    """Write a copy of a backup with other fields in its manifest."""

    def change(name: str, content: bytes) -> bytes:
        return json.dumps({**json.loads(content), **fields}).encode() if name == MANIFEST else content

    return rewritten(backup, file, change)


def test_the_manifest_says_what_the_file_contains(backup: Path) -> None:
    with zipfile.ZipFile(backup) as archive:
        manifest = json.loads(archive.read(MANIFEST))
        assert set(archive.namelist()) == {MANIFEST, *manifest["members"]}
        for name, member in manifest["members"].items():
            content = archive.read(name)
            assert (len(content), hashlib.sha256(content).hexdigest()) == (member["bytes"], member["sha256"])
    assert manifest["service_version"] == "0.1.0"
    assert "fleet.0001_initial" in manifest["migrations"]


@pytest.mark.slow("the drill backs up and restores a service that runs")
def test_a_stopped_service_is_backed_up(own_service: EmbeddedService, tmp_path: Path) -> None:
    own_service.start()
    with trimtab.Client(own_service.grpc_address, token=own_service.token) as client:
        client.create_study("kept", space=[trimtab.Bool("b")], objectives=[trimtab.Minimize("y")], algorithm="random")
    own_service.stop()
    run("backup", tmp_path / "b", "--data-dir", own_service.data_dir)
    (tmp_path / "empty").mkdir()
    run("restore", tmp_path / "b", "--data-dir", tmp_path / "empty")
    own_service.data_dir = tmp_path / "empty"
    own_service.start()
    with trimtab.Client(own_service.grpc_address, token=own_service.token) as client:
        assert [study.name for study in client.list_studies()] == ["kept"]


def test_a_backup_is_not_written_over_a_file_or_from_nothing(embedded_service: EmbeddedService, tmp_path: Path) -> None:
    (tmp_path / "kept").write_text("kept")
    said = run("backup", tmp_path / "kept", "--data-dir", embedded_service.data_dir, code=1)
    assert f"The file {tmp_path / 'kept'} exists already" in said
    assert (tmp_path / "kept").read_text() == "kept"
    assert "has no data of a service" in run("backup", tmp_path / "b", "--data-dir", tmp_path / "none", code=1)
    said = run("backup", tmp_path / "none" / "b", "--data-dir", embedded_service.data_dir, code=1)
    assert "cannot be written: No such file or directory" in said


def test_a_restore_refuses_a_folder_in_use(embedded_service: EmbeddedService, backup: Path, tmp_path: Path) -> None:
    said = run("restore", backup, "--data-dir", embedded_service.data_dir, code=1)
    assert f"is in use by the service that runs as process {embedded_service.pid}" in said
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").write_text("kept")
    assert "is not empty" in run("restore", backup, "--data-dir", tmp_path / "full", code=1)
    assert [path.name for path in (tmp_path / "full").iterdir()] == ["file"]


def test_a_restore_refuses_what_it_cannot_read(backup: Path, tmp_path: Path) -> None:
    def refused(file: Path) -> str:
        said = run("restore", file, "--data-dir", tmp_path / "data", code=1)
        assert {path.name for path in tmp_path.iterdir()} <= {file.name}
        file.unlink(missing_ok=True)
        return said

    file = tmp_path / "changed"
    assert "cannot be read: No such file" in refused(file)
    file.write_bytes(b"no backup")
    assert "is no backup" in refused(file)
    file.write_bytes(backup.read_bytes()[:-1000])
    assert "incomplete or damaged" in refused(file)
    damaged = bytearray(backup.read_bytes())
    damaged[len(damaged) // 2] ^= 1
    file.write_bytes(damaged)
    assert "damaged" in refused(file)
    changed = rewritten(backup, file, lambda name, content: content + b"x" if name == DUMP else content)
    assert "the checksum of database.dump is" in refused(changed)
    assert "not what its manifest lists" in refused(rewritten(backup, file, lambda n, c: None if n == DUMP else c))
    assert "no readable manifest.json" in refused(rewritten(backup, file, lambda n, c: None if n == MANIFEST else c))
    assert "has the format 2, and this version reads 1" in refused(in_manifest(backup, file, format=2))
    newer = in_manifest(backup, file, service_version="9.9", migrations=["fleet.9999_later"])
    assert "comes from version 9.9 of the service" in refused(newer)
    assert "comes from PostgreSQL 99" in refused(in_manifest(backup, file, postgresql_version=990001))


@pytest.mark.parametrize(
    "number",
    [
        signal.SIGKILL,
        *slow_cases("SIGKILL is the hardest", signal.SIGTERM, signal.SIGINT),
    ],
)
def test_a_killed_restore_leaves_nothing_half_written(backup: Path, tmp_path: Path, number: signal.Signals) -> None:
    data = tmp_path / "data"
    staging = tmp_path / ".data.restore"
    process = subprocess.Popen(command("restore", backup, "--data-dir", data), stderr=subprocess.DEVNULL)
    wait_for(lambda: (staging / "postgres" / "postmaster.pid").exists(), "PostgreSQL starts")
    process.send_signal(number)
    assert process.wait(PATIENCE) != 0
    assert not data.exists()
    assert staging.exists() == (number == signal.SIGKILL)

    run("restore", backup, "--data-dir", data)
    assert (data / "postgres" / "PG_VERSION").exists()
    assert not staging.exists()
    wait_for(lambda: not postgres_in(staging), "no PostgreSQL is left")


def postgres_in(folder: Path) -> list[psutil.Process]:
    return [found for found in psutil.process_iter(["cwd"]) if str(folder) in str(found.info["cwd"])]


def test_a_killed_backup_leaves_no_file(embedded_service: EmbeddedService, tmp_path: Path) -> None:
    file = tmp_path / "b"
    words = command("backup", file, "--data-dir", embedded_service.data_dir)
    process = subprocess.Popen(words, stderr=subprocess.DEVNULL)
    wait_for((tmp_path / "b.unfinished").exists, "the backup is being written")
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert not file.exists()
    run("backup", file, "--data-dir", embedded_service.data_dir)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["b"]


# --- backups of people who mean harm

# What a dump can have PostgreSQL do while it is restored: the data of a table runs its checks, and a materialized view
# is computed.
HOSTILE = {
    "check": "CREATE TABLE bait (x integer CHECK (harm(x))); INSERT INTO bait VALUES (1)",
    "view": "CREATE MATERIALIZED VIEW bait AS SELECT harm(1)",
}
HARM = {
    "program": "EXECUTE format('COPY (SELECT 1) TO PROGRAM %L', {marker!r})",
    "write": "EXECUTE format('COPY (SELECT 1) TO %L', {file!r})",
    "role": "IF current_user <> 'postgres' THEN EXECUTE 'ALTER ROLE trimtab_owner SUPERUSER'; END IF",
}


@pytest.fixture
def server(tmp_path: Path, programs_start: None) -> Iterator[Postgres]:
    """A PostgreSQL on which backups are made by hand."""
    postgres = Postgres(tmp_path / "server")
    postgres.prepare()
    child = postgres.child(tmp_path / "server.log")
    child.start()
    try:
        postgres.wait_until_ready(child, PATIENCE)
        yield postgres
    finally:
        stop([child])


def dump(postgres: Postgres, *statements: str) -> bytes:
    """Return the dump of a database that the superuser has made by these statements."""
    postgres.ensure_database("made")
    with psycopg.connect(postgres.url("made"), autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement)
    argv = [str(programs() / "pg_dump"), "--format=custom", postgres.url("made")]
    return subprocess.run(argv, check=True, capture_output=True).stdout


def with_dump(backup: Path, file: Path, content: bytes) -> Path:
    """Write a copy of a backup with another dump, whose manifest is right."""
    own = {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}

    def change(name: str, old: bytes) -> bytes:
        if name == MANIFEST:
            manifest = json.loads(old)
            return json.dumps({**manifest, "members": {**manifest["members"], DUMP: own}}).encode()
        return content if name == DUMP else old

    return rewritten(backup, file, change)


@pytest.mark.parametrize("place", HOSTILE)
@pytest.mark.parametrize("harm", HARM)
def test_a_restore_runs_no_program_of_the_backup(
    backup: Path, server: Postgres, tmp_path: Path, place: str, harm: str
) -> None:
    shared = Path(tempfile.mkdtemp(prefix="trimtab-test-"))
    shared.chmod(0o777)  # PostgreSQL may run as another user than this one
    marker = shared / "marker"
    body = HARM[harm].format(marker=f"touch {marker}", file=str(marker))
    harmful = (
        f"CREATE FUNCTION harm(x integer) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN {body}; RETURN true; END $$"
    )
    content = dump(server, harmful, HOSTILE[place])
    assert marker.exists() == (harm != "role"), "the attack works on the server where it was made"
    marker.unlink(missing_ok=True)
    said = run("restore", with_dump(backup, tmp_path / "b", content), "--data-dir", tmp_path / "data", code=1)
    assert "permission denied" in said
    assert not marker.exists()
    assert not (tmp_path / "data").exists()
    shutil.rmtree(shared)


def test_a_backup_of_a_restored_database_runs_nothing_either(backup: Path, server: Postgres, tmp_path: Path) -> None:
    """A view in place of the table of migrations would run with the rights of whoever reads it."""
    shared = Path(tempfile.mkdtemp(prefix="trimtab-test-"))
    shared.chmod(0o777)
    marker = shared / "marker"
    harmful = (
        "CREATE FUNCTION harm() RETURNS text LANGUAGE plpgsql AS $$ BEGIN"
        f" COPY (SELECT 1) TO PROGRAM 'touch {marker}'; RETURN 'x'; END $$"
    )
    view = "CREATE VIEW django_migrations AS SELECT 1 AS id, harm() AS app, 'n' AS name"
    file = with_dump(backup, tmp_path / "b", dump(server, harmful, view))
    run("restore", file, "--data-dir", tmp_path / "data")
    said = run("backup", tmp_path / "again", "--data-dir", tmp_path / "data", code=1)
    assert "permission denied" in said
    assert not marker.exists()
    shutil.rmtree(shared)


def test_a_hostile_archive_is_refused(backup: Path, tmp_path: Path) -> None:
    def refused(file: Path) -> str:
        said = run("restore", file, "--data-dir", tmp_path / "data", code=1)
        assert {path.name for path in tmp_path.iterdir()} == {file.name}
        file.unlink()
        return said

    file = tmp_path / "changed"
    with zipfile.ZipFile(backup) as old:
        members = json.loads(old.read(MANIFEST))["members"]
    nothing = {"bytes": 0, "sha256": hashlib.sha256(b"").hexdigest()}
    # Names outside of the folder, which no manifest may list.
    for name in ("../outside", "/tmp/trimtab-outside", "logs/../../outside"):
        in_manifest(backup, file, members={**members, name: nothing})
        with zipfile.ZipFile(file, "a") as archive:
            archive.writestr(name, b"")
        assert "not what its manifest lists" in refused(file)
    # 64 MiB in a few bytes: in the manifest, in a secret, and more of the dump than its manifest says.
    many = b"\0" * 2**26
    for name in (MANIFEST, "secret-key"):
        with zipfile.ZipFile(backup) as old, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as new:
            for other in old.namelist():
                new.writestr(other, many if other == name else old.read(other))
        assert "no readable manifest.json" in (said := refused(file)) or "the checksum of secret-key" in said
    large = {**members, "secret-key": {"bytes": 2**26, "sha256": hashlib.sha256(many).hexdigest()}}
    assert "secret-key has more than 4096 bytes" in refused(in_manifest(backup, file, members=large))
    # Two members of one name, an encrypted member, and a compression that nobody knows.
    shutil.copyfile(backup, file)
    with zipfile.ZipFile(file, "a") as archive, pytest.warns(UserWarning, match="Duplicate"):
        archive.writestr("secret-key", b"another")
    assert "the checksum of secret-key" in refused(file)
    for place, word in ((8, b"\x01\x00"), (10, b"\x63\x00")):  # in the last central header: flags, method
        content = bytearray(backup.read_bytes())
        start = content.rindex(b"PK\x01\x02")
        content[start + place : start + place + 2] = word
        file.write_bytes(content)
        assert "damaged" in refused(file)
