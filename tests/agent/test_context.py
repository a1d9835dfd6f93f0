"""A study with a context on a real agent: a C program whose best size of reads depends on how a file is accessed.

The program reads one mebibyte of a file in order, or a hundred records of 64 bytes at random places, with reads of a
given size. In order, large reads save calls. At random places, each read is a block whose checksum covers all of it, so
that large reads cost much for what nobody needs. In both cases the best size takes less than half of the default's
time: other programs disturb the measurements, also the time of the processor, which is the metric, and an effect that
is no larger than this noise cannot be proven by a few runs.
"""

import re
import subprocess
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest

import trimtab
from tests.factories.agent import RealAgent
from tests.factories.patience import wait_for
from tests.factories.service import EmbeddedService
from trimtab.cli.context_controller import Follower
from trimtab.context import ContextRow

SIZES = [64, 256, 2048, 16384, 131072]
DEFAULT = 2048
ACCESSES = ["ordered", "random"]
PROGRAM = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { LENGTH = 1 << 22, RECORD = 64 };

int main(int count, char **words) {
    size_t size = strtoul(words[2], NULL, 10);
    int random = strcmp(words[3], "random") == 0, file = open(words[1], O_RDONLY);
    char *room = malloc(size);
    unsigned state = 7, hash = 2166136261u;
    long sum = 0;
    struct timespec begin, end;
    if (count != 4 || file < 0 || room == NULL) return 1;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begin);
    for (int turn = 0; turn < 20; turn++) {
        if (random) {
            for (int record = 0; record < 100; record++) {
                state = state * 1103515245u + 12345u;
                off_t place = (off_t)((state >> 8) % (LENGTH / size)) * (off_t)size;
                if (pread(file, room, size, place) < RECORD) return 2;
                for (size_t i = 0; i < size; i++) hash = (hash ^ (unsigned char)room[i]) * 16777619u;
            }
        } else {
            for (off_t place = 0; place < LENGTH / 4; place += (off_t)size) {
                if (pread(file, room, size, place) != (ssize_t)size) return 3;
                sum += room[0];
            }
        }
    }
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
    double seconds = (double)(end.tv_sec - begin.tv_sec) + 1e-9 * (double)(end.tv_nsec - begin.tv_nsec);
    printf("sum=%ld hash=%u\nseconds=%.9f\n", sum, hash, seconds);
    return 0;
}
"""
COMPONENT = """
name: reader
parameters:
  size: {type: ordinal, values: [64, 256, 2048, 16384, 131072], default: 2048}
  access: {type: categorical, values: [ordered, random], default: ordered}
build:
  sources: [reader.c]
  commands:
    - [gcc, -O2, -o, "{build}/reader", "{component}/reader.c"]
    - [dd, if=/dev/zero, "of={build}/data", bs=1M, count=4, status=none]
  depends: [gcc]
applications:
  main: {command: ["{build}/reader", "{build}/data", "{size}", "{access}"]}
metrics:
  seconds: {type: regex, pattern: 'seconds=(\\S+)'}
"""


@pytest.fixture
def components(tmp_path: Path) -> Path:
    home = tmp_path / "components" / "reader"
    home.mkdir(parents=True)
    (home / "reader.c").write_text(PROGRAM)
    (home / "component.yaml").write_text(COMPONENT)
    return home.parent


@pytest.fixture
def exhaustive(components: Path, tmp_path: Path) -> dict[tuple[str, int], float]:
    """The least seconds of five runs with each size in each context, without an agent."""
    program, data = tmp_path / "reader", tmp_path / "data"
    subprocess.run(["gcc", "-O2", "-o", program, components / "reader" / "reader.c"], check=True)
    data.write_bytes(bytes(1 << 22))
    found: dict[tuple[str, int], list[float]] = {}
    for _ in range(5):
        for access, size in product(ACCESSES, SIZES):
            done = subprocess.run([program, data, str(size), access], check=True, capture_output=True, text=True)
            seconds = re.search(r"seconds=(\S+)", done.stdout)
            assert seconds is not None
            found.setdefault((access, size), []).append(float(seconds[1]))
    return {key: min(values) for key, values in found.items()}


@pytest.fixture
def client(embedded_service: EmbeddedService) -> Iterator[trimtab.Client]:
    with trimtab.Client(embedded_service.grpc_address, token=embedded_service.token) as made:
        yield made


@pytest.mark.parametrize(
    ("algorithm", "trials"),
    [
        ("random", 24),
        pytest.param(
            "gp",
            20,
            marks=pytest.mark.slow("gp takes minutes for its 20 trials of each context; random shows the same table"),
        ),
    ],
)
def test_the_table_has_good_settings_for_each_context(
    algorithm: str,
    trials: int,
    client: trimtab.Client,
    embedded_service: EmbeddedService,
    tmp_path: Path,
    components: Path,
    exhaustive: dict[tuple[str, int], float],
) -> None:
    proof = tmp_path / "token"
    proof.write_text(embedded_service.token)
    proof.chmod(0o600)
    with RealAgent(tmp_path, embedded_service.grpc_address, proof, components, name="reader-agent"):
        name, spec = client.parse_study_file(
            f"component: reader\nname: reader-{algorithm}\nalgorithm: {algorithm}\nseed: 1\n"
            "context: {access: }\n"
            "objectives: [{minimize: seconds, unit: s}]\n"
            f"budget: {{max_trials: {trials}}}\nfinal_check: {{max_trials: 10, effects: 0}}\n"
            "placement: {exclusive: false}\n"
        )
        assert name is not None
        study = client.create_from_spec(name, spec)
        wait_for(lambda: study.refresh().state.finished, "the study ends")
    assert study.state == "COMPLETED", study.status.reason
    searched = [trial.params["access"] for trial in study.trials(["COMPLETED"]) if trial.origin != "check"]
    assert searched.count("random") == searched.count("ordered") == trials // 2

    sizes, settings = {}, {}
    for access in ACCESSES:
        row = study.best({"access": access})
        assert row.verdict is not None
        # Other processes may disturb the runs on this machine. Then the settings that were found are not those to use.
        assert row.verdict.proven or row.verdict.code == "disturbed", (access, row.settings, row.verdict)
        assert row.is_default == (not row.verdict.proven)
        assert row.best is not None
        sizes[access] = int(row.best["size"])
        settings[access] = row.settings["size"]
        assert settings[access] == (DEFAULT if row.is_default else sizes[access])
        # The two best sizes may change places; the default takes more than twice the time of the best one.
        least = min(exhaustive[access, size] for size in SIZES)
        assert exhaustive[access, sizes[access]] <= 2 * least < exhaustive[access, DEFAULT], (sizes, exhaustive)
    assert sizes["random"] < DEFAULT < sizes["ordered"]

    # A controller follows the context with the same table.
    present = ["random"]
    applied: list[ContextRow] = []
    follower = Follower(study.context_table, lambda: {"access": present[0]}, applied.append, confirmations=1)
    follower.step()
    present[0] = "ordered"
    follower.step()
    # Settings that do not change are not applied again.
    expected = list(dict.fromkeys([settings["random"], settings["ordered"]]))
    assert [row.settings["size"] for row in applied] == expected
