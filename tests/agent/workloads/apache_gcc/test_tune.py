"""Tests of tune.py."""

import json
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path

import pytest

import trimtab
from tests.agent.workloads.apache_gcc.httpd import LEVELS, WORKLOAD, copy
from tests.agent.workloads.shared import check_refusal, module_of, offering, run_script
from tests.factories.service import EmbeddedService

CRITERIA = "requests_per_second,binary_bytes"
tuner, analysis = module_of(WORKLOAD, "tune"), module_of(WORKLOAD, "analysis")


@pytest.fixture(scope="module")
def service(
    workload: Path, builds: Path, embedded_service: EmbeddedService, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, str]]:
    """The variables by which tune.py finds the service. Its agent uses one httpd for all flags and loads it shortly."""
    folder = tmp_path_factory.mktemp("agent")
    changed = copy(folder / "workloads")
    (changed / "source").symlink_to((workload / "source").resolve())
    for name, before, after in (
        ("component.yaml", '"{build}", "{flags}"]]', '"{build}", -O0]]'),
        ("component.yaml", "\napplications:\n", '\nheader: [["true", "{flags}"]]\n\napplications:\n'),
        ("measure.py", "ROUNDS = 5", "ROUNDS = 1"),
        ("measure.py", "2048, 6000", "2048, 200"),
    ):
        text = (changed / name).read_text()
        assert before in text
        (changed / name).write_text(text.replace(before, after))
    with offering(changed, embedded_service, folder, builds=builds) as variables:
        yield variables


@pytest.mark.slow("a whole study with many builds of httpd")
def test_tune(service: dict[str, str], tmp_path: Path) -> None:
    asked = ["--pages", "static-2k", "--criteria", CRITERIA, "--trials", "11", "--repetitions", "1", "--rounds", "6"]
    asked += [
        "--screening",
        "2",
        "--algorithms",
        "random,nsga2",
        "--name",
        "tested",
        "--figures",
        str(tmp_path / "drawn"),
    ]
    answer = run_script(WORKLOAD, "tune", *asked, **service)
    assert answer.returncode == 0, answer.stderr
    with trimtab.Client(service["TRIMTAB_URL"], token=service["TRIMTAB_TOKEN"]) as client:
        checked = client.get_study("tested-static-2k-check")
        rounds = [trial for trial in checked.trials() if trial.origin == "enqueued"]
        for algorithm in ("random", "nsga2"):
            search = client.get_study(f"tested-static-2k-{algorithm}")
            assert (search.state, checked.state) == ("COMPLETED", "COMPLETED")
            trials = search.trials()
            assert len(trials) == 11
            # the levels alone, each once in every round
            plain = [trial.params["opt-level"] for trial in trials if trial.origin == "enqueued"]
            assert plain == [*LEVELS, "O2", "O1"]  # the random ones: every second round goes backwards
        compared = {json.dumps(trial.params, sort_keys=True) for trial in rounds}
        assert len(rounds) == 6 * len(compared)
        once = rounds[: len(compared)]
        assert [trial.params for trial in rounds[len(compared) : 2 * len(compared)]] == [
            trial.params for trial in reversed(once)
        ]
        assert [trial.params["opt-level"] for trial in once[:6]] == list(LEVELS)
        assert 7 <= len(compared) <= 10
        # the same command again measures nothing a second time, and prints the same
        again = run_script(WORKLOAD, "tune", *asked, **service)
        assert again.returncode == 0, again.stderr
        assert again.stdout == answer.stdout
        assert len(checked.trials()) == len(client.get_study(checked.name).trials())
    assert ET.parse(tmp_path / "drawn" / "static-2k.svg").getroot().tag.endswith("svg")
    assert "nsga2: 11 completed; " in answer.stdout
    for words in (
        "Pareto set: ",
        "Best single runs",
        "Final check, medians",
        "against -O2 (95 %)",
        "Which flags matter",
        "-Ofast",
    ):
        assert words in answer.stdout
    # the program is always the same
    assert re.search(r"binary_bytes\s+its best\s+\+0\.0 % \(\+0\.0 to \+0\.0\) ", answer.stdout)
    assert "weak evidence" in answer.stdout


def test_a_study_that_was_interrupted_before_it_was_paused(service: dict[str, str]) -> None:
    """The study has none of its first configurations, and its agents have measured others."""
    name, criteria = "interrupted", [analysis.Criterion("binary_bytes")]
    with trimtab.Client(service["TRIMTAB_URL"], token=service["TRIMTAB_TOKEN"]) as client:
        space = client.component("apache-gcc").space
        client.create_study(
            name,
            space=space,
            objectives=[tuner.objective(one) for one in criteria],
            component="apache-gcc",
            final_check=False,
            application="static-2k",
            algorithm="random",
            resampling="none",
            max_trials=20,
        )
        first = [tuner.plain(level, space) for level in LEVELS]
        study = tuner.open_study(client, name, tuner.arguments([]), criteria, space, [first], 20, "random")
        enqueued = [trial.params for trial in study.trials() if trial.origin == "enqueued"]
        assert (enqueued, study.state) == (first, "ACTIVE")
        study.complete("that is all")


@pytest.mark.parametrize(
    ("algorithms", "message"),
    [
        ("random,nsga3", "algorithm.name: 'nsga3' is not allowed. Use one of auto, "),
        ("random,", "--algorithms: 'random,' is not allowed. Use names of algorithms, with commas between them"),
    ],
)
def test_a_wrong_algorithm_begins_no_study(service: dict[str, str], algorithms: str, message: str) -> None:
    """The first algorithm is right, but its study must not begin either."""
    check_refusal(run_script(WORKLOAD, "tune", "--algorithms", algorithms, "--name", "refused", **service), message)
    with trimtab.Client(service["TRIMTAB_URL"], token=service["TRIMTAB_TOKEN"]) as client:
        assert client.list_studies(name_prefix="refused") == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--pages", "static"], "--pages: 'static' is not allowed. Use one of static-2k, "),
        (["--criteria", "requests_per_second,speed"], "--criteria: 'speed' is not allowed. Use requests_per_second, "),
        (["--criteria", ""], "--criteria: '' is not allowed. Use requests_per_second, "),
        (
            ["--trials", "30"],
            "--trials: 30 is not allowed. Use 31 or more: levels and random configurations alone take 28",
        ),
        (["--screening", "-1"], "--screening: -1 is not allowed. Use 0 or more"),
        (["--repetitions", "0"], "--repetitions: 0 is not allowed. Use 1 or more"),
        (["--rounds", "5"], "--rounds: 5 is not allowed. Use 0, or 6 or more"),
    ],
)
def test_tune_refuses(arguments: list[str], message: str, programs_start: None) -> None:
    check_refusal(run_script(WORKLOAD, "tune", *arguments), message)
