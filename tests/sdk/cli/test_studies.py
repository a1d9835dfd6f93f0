"""`trimtab study`, against a real service."""

import csv
import io
import json
import os
import random
import subprocess
from dataclasses import asdict
from pathlib import Path

import pytest

import trimtab
from tests.factories.console import Rest
from tests.factories.service import EmbeddedService
from tests.sdk.cli.shell import COMMAND, STUDY, Shell
from tests.sdk.conftest import make_study
from trimtab.study import Study


def test_a_study_from_a_file(shell: Shell, study_file: str, client: trimtab.Client, name: str) -> None:
    assert shell.succeed("study", "create", study_file) == f"{name}\n"
    assert client.get_study(name).spec.space[0] == trimtab.Float("x", 1e-3, 10, log=True)
    error = shell.fail("study", "create", study_file)
    assert error.splitlines() == [
        f"error: A study '{name}' exists already. Load it, or choose another name. [study_exists]",
        "Choose another name, or continue that study with --load-if-exists",
    ]
    loaded = json.loads(shell.succeed("study", "create", study_file, "--load-if-exists", "--json"))
    assert (loaded["name"], loaded["state"], loaded["trial_count"]) == (name, "ACTIVE", 0)
    run = shell.run("study", "create", study_file, "--load-if-exists")
    assert (run.returncode, run.stderr) == (0, "")
    Path(study_file).write_text(STUDY.format(name=name).replace("random", "sobol") + "budget: {max_trials: 9}\n")
    run = shell.run("study", "create", study_file, "--load-if-exists")
    assert (run.returncode, run.stdout) == (0, f"{name}\n")
    assert run.stderr == (
        f"the study exists and keeps its own settings study={name} "
        "differences=\"algorithm is 'random', not 'sobol'; max_trials is None, not 9\"\n"
    )
    assert shell.succeed("study", "create", study_file, "--name", name + "-2") == f"{name}-2\n"


def test_bad_files_are_named_by_field(shell: Shell, study_file: str) -> None:
    text = Path(study_file).read_text()
    Path(study_file).write_text(text.replace("minimize", "minimise"))
    assert f"error: {study_file}:7: objectives[0].minimise: the key is not known." in shell.fail(
        "study", "create", study_file
    )
    Path(study_file).write_text(text.replace("min: 1e-3", "min: 11"))
    assert f"error: {study_file}:4: parameters.x.min: 11.0 is above max, which is" in shell.fail(
        "study", "create", study_file
    )
    assert "does not exist" in shell.fail("study", "create", "nowhere.yaml", code=2)


def test_list_and_show(shell: Shell, client: trimtab.Client, name: str) -> None:
    assert shell.run("study", "list", "--prefix", name).stderr == "No studies match.\n"
    study = make_study(client, name, objectives=[trimtab.Minimize("seconds", "s")], max_trials=20)
    assert "No trial has been completed" in shell.run("study", "show", name).stderr
    study.tell(study.ask()[0], 1.25)
    listed = shell.succeed("study", "list", "--prefix", name, "--state", "active")
    assert name in listed
    assert "1/20" in listed
    assert "minimize seconds (s)" in listed
    found = json.loads(shell.succeed("study", "list", "--prefix", name, "--json"))
    assert [item["finished_count"] for item in found] == [1]
    assert "states[0]: 'NONE' is not allowed. Use ACTIVE" in shell.fail("study", "list", "--state", "NONE")
    shown = shell.succeed("study", "show", name)
    assert "Verdict: not yet known: " in shown
    assert "Recommended: seconds 1.25 s (1 run)" in shown
    assert "20 trials" in shown
    whole = json.loads(shell.succeed("study", "show", name, "--json"))
    assert whole["best"][0]["metrics"] == {"seconds": 1.25}
    assert whole["spec"]["parameters"]["block"] == {"type": "ordinal", "values": [4, 16, 64, 256]}


def test_show_prints_the_description_the_chosen_methods_and_the_verdict(
    shell: Shell, client: trimtab.Client, name: str
) -> None:
    study = client.create_study(
        name,
        space=[trimtab.Float("x", 0, 1, default=0.9)],
        objectives=[trimtab.Minimize("seconds", "s")],
        algorithm="auto",
        max_trials=1,
        pruning="default",
        final_check=True,
        description="# Why\n\n[bold]It is slow.",
    )
    shown = shell.succeed("study", "show", name)
    assert f"{name}\n  # Why\n\n  [bold]It is slow.\n" in shown
    assert f"auto: {study.algorithm}. " in shown
    assert "pruning    default" in shown
    study.optimize(lambda params: 1.0, progress=False)
    shown = shell.succeed("study", "show", name)
    assert "Verdict: no measurable gain" in shown
    whole = json.loads(shell.succeed("study", "show", name, "--json"))
    assert whole["verdict"]["text"].startswith("no measurable gain")
    assert whole["algorithm_choice"]["name"] == study.algorithm
    assert whole["spec"]["pruning"][0]["name"] == "default"
    assert whole["spec"]["description"] == study.spec.description == "# Why\n\n[bold]It is slow."


def test_a_study_that_has_ended_is_checked_and_extended(shell: Shell, client: trimtab.Client, name: str) -> None:
    space = [trimtab.Float("x", 0, 1, default=0.9)]
    study = make_study(client, name, space=space, constraints=[], max_trials=2)
    assert "search_not_over" in shell.fail("study", "check", name)
    for trial in study.ask(2):
        study.tell(trial, 3.0 - trial.number)  # the default is not the best
    assert "final check has begun" in shell.run("study", "check", name, "--trials", "8", "--width", "0.5").stderr
    assert study.refresh().state == "ACTIVE"
    assert "check_under_way" in shell.fail("study", "check", name, "--effects", "16")
    study.optimize(lambda params: 1.0, progress=False)
    assert study.refresh().state == "COMPLETED"
    assert "3 trials" in shell.succeed("study", "extend", name, "--trials", "3")
    assert study.refresh().state == "ACTIVE"


def test_show_a_pareto_front(shell: Shell, client: trimtab.Client, name: str) -> None:
    study = make_study(client, name, objectives=[trimtab.Minimize("seconds"), trimtab.Maximize("rate")])
    for trial, value in zip(study.ask(2), (1.0, 2.0), strict=True):
        study.tell(trial, {"seconds": value, "rate": value})
    assert "Pareto front: 2 trials" in shell.succeed("study", "show", name)


def test_a_pareto_front_of_many_parameters_fits_a_narrow_terminal(
    shell: Shell, client: trimtab.Client, name: str
) -> None:
    space = [trimtab.Float(f"parameter_{index}", 0, 1, default=0.5) for index in range(9)]
    objectives = [trimtab.Minimize("seconds"), trimtab.Maximize("rate")]
    study = make_study(client, name, space=space, constraints=[], objectives=objectives)
    for trial in study.ask(7):
        value = float(trial.number)
        study.tell(trial, {"seconds": value, "rate": -10.0 if trial.number == 1 else value})
    shell.environment["COLUMNS"] = "80"
    lines = shell.succeed("study", "show", name).splitlines()
    table = lines[lines.index("Pareto front: 7 trials") :]
    assert max(map(len, table)) <= 80
    assert "1 (default)" in "\n".join(table)
    for column in ("seconds", "rate", *(one.name for one in space)):
        assert sum(line.split()[:1] == [column] for line in table) == 2, "two tables of at most four trials"


def test_the_shell_completes_names_of_studies(shell: Shell, study: Study) -> None:
    words = {
        "_TRIMTAB_COMPLETE": "complete_bash",
        "COMP_WORDS": f"trimtab trial list {study.name[:-2]}",
        "COMP_CWORD": "3",
    }
    shell.environment |= words
    assert shell.succeed() == f"{study.name}\n"
    shell.environment["TRIMTAB_TOKEN"] = "wrong"
    run = shell.run()
    assert (run.stdout.strip(), run.stderr) == ("", ""), "a shell shows no errors"


def test_a_reader_that_has_enough_is_no_error(shell: Shell, study: Study) -> None:
    read, write = os.pipe()
    os.close(read)
    run = subprocess.run(
        [*COMMAND, "study", "export", study.name],
        env=shell.environment,
        stdout=write,
        stderr=subprocess.PIPE,
        text=True,
    )
    os.close(write)
    assert run.stderr == ""


def test_everyone_reads_the_same_verdict_on_a_pareto_set(
    shell: Shell, client: trimtab.Client, embedded_service: EmbeddedService, name: str
) -> None:
    study = client.create_study(
        name,
        space=[trimtab.Float("x", 0, 1, default=0.5), trimtab.Int("n", 1, 16, default=4)],
        objectives=[trimtab.Minimize("seconds", "s"), trimtab.Maximize("rate")],
        algorithm="nsga2",
        max_trials=16,
        final_check=True,
        seed=3,
    )
    noise = random.Random(0)

    def measure(params: trimtab.Params) -> dict[str, float]:
        x, n = float(params["x"]), float(params["n"])
        seconds, rate = 20 - 10 * x - n / 2, 100 - 20 * x + 8 * n
        return {"seconds": seconds * noise.gauss(1, 0.02), "rate": rate * noise.gauss(1, 0.02)}

    assert study.pareto_verdict is None
    study.optimize(measure, progress=False)
    assert study.refresh().state == "COMPLETED"
    verdict = study.pareto_verdict
    assert verdict is not None
    assert verdict.proven
    assert (verdict.trials, verdict.measured) == (20, 36)
    assert study.verdict is None
    found = Rest(embedded_service)("GET", f"/studies/{name}/analysis")["pareto_verdict"]
    assert json.loads(json.dumps(asdict(verdict))) == found
    assert Rest(embedded_service)("GET", f"/studies/{name}/trials.json")["pareto_verdict"] == found
    assert json.loads(shell.succeed("study", "show", name, "--json"))["pareto_verdict"] == found
    shown = shell.succeed("study", "show", name)
    assert f"Verdict: {verdict.text}\n" in shown
    assert "Gains over the default, all intervals at once with 95 %:" in shown
    for member in verdict.members:
        assert member.runs == 5
        for one in member.objectives:
            assert one.gain is not None
            assert one.value == pytest.approx(one.default * (1 - one.gain if one.metric == "seconds" else 1 + one.gain))
            assert f"{100 * one.gain:.1f} % (" in shown


def test_a_check_with_several_objectives_finds_no_changes(shell: Shell, client: trimtab.Client, name: str) -> None:
    space = [trimtab.Float("x", 0, 1, default=0.9)]
    objectives = [trimtab.Minimize("seconds"), trimtab.Minimize("watts")]
    study = make_study(client, name, space=space, constraints=[], objectives=objectives, max_trials=2)
    for trial in study.ask(2):
        study.tell(trial, {"seconds": 3.0 - trial.number, "watts": 3.0 - trial.number})
    assert "final_check.effects: 16 is not allowed. Use 0 for a study" in shell.fail(
        "study", "check", name, "--effects", "16"
    )
    assert "final check has begun" in shell.run("study", "check", name, "--trials", "10", "--effects", "0").stderr
    assert study.refresh().state == "ACTIVE"


def test_enqueue_a_configuration(shell: Shell, study: Study) -> None:
    name, values = study.name, ["x=1", "n=1", "block=4", "alg=a", "huge=true"]
    shell.succeed("study", "enqueue", name, *values, "--count", "2")
    params = {"x": 1.0, "n": 1, "block": 4, "alg": "a", "huge": True}
    assert [(trial.origin, trial.params) for trial in study.trials()] == [("enqueued", params)] * 2
    for wrong, allowed in (("alg=c", "a, b"), ("huge=1", "true, false"), ("n=1.5", "a whole number"), ("n", "=")):
        reported = shell.fail("study", "enqueue", name, wrong)
        assert allowed in reported
    assert len(study.trials()) == 2


def test_edit_the_space(shell: Shell, client: trimtab.Client, name: str) -> None:
    space = [trimtab.Int("n", 1, 16, default=4), trimtab.Categorical("alg", ["a", "b"], default="a")]
    study = make_study(client, name, space=space, constraints=[], max_trials=20)
    study.add_trial({"n": 4, "alg": "b"}, 1.0)
    study.add_trial({"n": 4, "alg": "a"}, 2.0)
    cache = 'cache={"type": "int", "min": 1, "max": 64, "default": 8}'
    dry = shell.succeed("study", "edit-space", name, "--add", cache, "--fix", "alg=a", "--dry-run")
    assert dry.startswith("Not changed: 1 of 2 trials are used, 1 of them with cache = 8")
    assert study.refresh().space_version == 1
    done = shell.succeed("study", "edit-space", name, "--add", cache, "--fix", "alg=a")
    assert done.startswith("Edited: 1 of 2 trials are used, 1 of them with cache = 8")
    assert "1 had another value of alg and is left out." in done
    shown = shell.succeed("study", "show", name)
    assert "alg = a" in shown
    assert "1 of 2 trials are used" in shown
    shell.succeed("study", "edit-space", name, "--fix", "alg=b")
    shell.succeed("study", "edit-space", name, "--fix", "alg=a")
    shell.succeed(
        "study", "edit-space", name, "--free", "alg", "--remove", "cache", "--remove", "n=4", "--trials", "30"
    )
    status = study.refresh()
    assert (status.fixed, status.removed, study.spec.max_trials) == ({}, {"cache": 8, "n": 4}, 30)
    data = json.loads(shell.succeed("study", "show", name, "--json"))
    assert [one["version"] for one in data["space_edits"]] == [2, 3, 4, 5]
    assert "params.n" in shell.succeed("study", "export", name, "--format", "csv").splitlines()[0]
    for wrong in ("cache", "cache=1", 'cache={"type": "int", "least": 1}'):
        assert "PARAMETER=JSON" in shell.fail("study", "edit-space", name, "--add", wrong)
    assert "at least one parameter" in shell.fail("study", "edit-space", name)
    assert "free[0]: 'n' was removed" in shell.fail("study", "edit-space", name, "--free", "n")


def test_create_says_how_many_configurations_the_constraints_leave(shell: Shell, name: str, tmp_path: Path) -> None:
    spec = {
        "parameters": {one: {"type": "int", "min": 1, "max": 4096} for one in "ab"},
        "constraints": ["a * b == 4096"],
        "objectives": [{"minimize": "seconds"}],
    }
    path = tmp_path / "study.json"
    path.write_text(json.dumps(spec))
    run = shell.run("study", "create", str(path), "--name", name)
    assert run.returncode == 0, run.stderr
    assert "The constraints leave 13 of 16.8 million configurations." in run.stderr


def test_create_a_study_that_starts_from_an_earlier_one(
    shell: Shell, client: trimtab.Client, name: str, tmp_path: Path
) -> None:
    path = tmp_path / "study.yaml"
    path.write_text(STUDY.format(name=name))
    shell.succeed("study", "create", str(path))
    client.get_study(name).add_trial({"x": 0.5, "alg": "b"}, 1.0)
    path.write_text(STUDY.format(name=f"{name}-2") + f"start_from: [{name}]\n")
    run = shell.run("study", "create", str(path))
    assert (run.returncode, run.stdout.strip()) == (0, f"{name}-2")
    assert f"Started from {name}: 1 of its best configurations are measured first." in run.stderr
    (trial,) = client.get_study(f"{name}-2").trials()
    assert (trial.origin, trial.params) == ("earlier", {"x": 0.5, "alg": "b"})
    shown = json.loads(shell.succeed("study", "show", f"{name}-2", "--json"))
    assert shown["started_from"] == [{"study": name, "taken": 1, "passed_over": 0}]
    assert shown["spec"]["start_from"] == [name]
    path.write_text(STUDY.format(name=f"{name}-3") + "start_from: [no-study]\n")
    assert "start_from[0]: 'no-study'" in shell.fail("study", "create", str(path))


def test_change_the_space_and_the_budget(shell: Shell, study: Study) -> None:
    name = study.name
    study.enqueue({"x": 1.0, "n": 1, "block": 4, "alg": "a", "huge": True})
    changes = ["n=..8", "x=0.5..", "block=16,64,512", "alg=a,c"]
    assert "1 waiting" in shell.succeed("study", "change-space", name, *changes, "--dry-run")
    study.refresh()
    assert study.status.space_version == 1
    shell.succeed("study", "change-space", name, *changes)
    study.refresh()
    x, n, block, alg, _ = study.spec.space
    assert (x, n) == (trimtab.Float("x", 0.5, 10, log=True), trimtab.Int("n", 1, 8, step=1))
    assert (block, alg) == (trimtab.Ordinal("block", [16, 64, 512]), trimtab.Categorical("alg", ["a", "c"]))
    assert [trial.state for trial in study.trials()] == ["FAILED"]
    for wrong, reported in (("n=8", "MIN..MAX"), ("n=1..x", "a whole number"), ("huge=true", "parameter_unchangeable")):
        assert reported in shell.fail("study", "change-space", name, wrong)
    assert "30 trials or 60 s" in shell.succeed("study", "extend", name, "--trials", "30", "--seconds", "60")
    assert "30 trials." in shell.succeed("study", "extend", name, "--seconds", "none")
    assert "--trials" in shell.fail("study", "extend", name)


def test_pause_resume_stop_delete(shell: Shell, study: Study) -> None:
    name = study.name
    shell.succeed("study", "pause", name, "--reason", "maintenance")
    assert study.refresh().reason == "maintenance"
    shell.succeed("study", "resume", name)
    assert study.refresh().state == "ACTIVE"
    shell.succeed("study", "stop", name)
    assert study.refresh().state == "ABORTED"
    assert "[invalid_step]" in shell.fail("study", "resume", name)
    assert "Delete" in shell.fail("study", "delete", name)
    shell.succeed("study", "delete", name, "--yes")
    assert shell.fail("study", "show", name).splitlines() == [
        f"error: There is no study '{name}'. [study_not_found]",
        "To list the names: trimtab study list",
    ]


def test_export(shell: Shell, client: trimtab.Client, name: str, tmp_path: Path) -> None:
    study = make_study(client, name, space=[trimtab.Float("x", 0, 1), trimtab.Bool("b")], constraints=[])
    first, second, _ = study.ask(3)
    study.tell(first, {"seconds": 1.25})
    study.tell(second, infeasible='a "quoted", reason\nof two lines')
    target = tmp_path / "trials.csv"
    assert shell.run("study", "export", name, "--format", "csv", "-o", str(target)).stderr == (
        f"3 trials written to {target}.\n"
    )
    rows = list(csv.DictReader(io.StringIO(target.read_text())))
    assert [row["state"] for row in rows] == ["COMPLETED", "INFEASIBLE", "ACTIVE"]
    assert float(rows[0]["params.x"]) == first.params["x"]
    assert rows[0]["metrics.seconds"] == "1.25"
    assert rows[1]["reason"] == 'a "quoted", reason\nof two lines'
    assert rows[2]["finished_at"] == ""
    exported = json.loads(shell.succeed("study", "export", name))
    assert [trial["params"] for trial in exported["trials"]] == [trial.params for trial in study.trials()]
    again = tmp_path / "again.json"
    again.write_text(json.dumps(exported["spec"]))
    shell.succeed("study", "create", str(again), "--name", name + "-again")
    assert client.get_study(name + "-again").spec == study.spec
    assert "cannot be written" in shell.fail("study", "export", name, "-o", str(tmp_path))


def test_outliers_are_shown_with_their_counters(shell: Shell, client: trimtab.Client, name: str) -> None:
    study = client.create_study(
        name, space=[trimtab.Int("n", 1, 3)], objectives=[trimtab.Minimize("seconds")], algorithm="random"
    )
    assert "No run stands out" in shell.run("study", "outliers", name).stderr
    for place in range(12):
        slow = 1.5 if place == 7 else 1.0
        metrics = {"seconds": slow * (10.0 + 0.1 * (place % 4)), "reads": slow * (100.0 + place % 4)}
        study.add_trial({"n": 1 + place % 3}, metrics)
    assert shell.succeed("study", "outliers", name).strip() == "trial 8: 1.52 times the median; more reads"
    [group] = json.loads(shell.succeed("study", "outliers", name, "--json"))["groups"]
    assert group["trials"] == [8]
    assert "a metric of its finished trials: reads, seconds" in shell.fail("study", "outliers", name, "--metric", "x")


def test_prospects_say_whether_it_is_worth_tuning(shell: Shell, client: trimtab.Client, name: str) -> None:
    space = [trimtab.Float("x", 0.0, 1.0, default=0.5), trimtab.Int("n", 1, 8, default=4)]
    study = client.create_study(name, space=space, objectives=[trimtab.Minimize("seconds")], algorithm="random")
    assert "Nothing is known yet" in shell.run("study", "prospects", name).stderr
    for n in (4, 1, 2, 3, 5, 6, 7, 8, 4):
        study.add_trial({"x": 0.5, "n": n}, {"seconds": 12.0 - n})
    waited = shell.succeed("study", "prospects", name, "--json", "--timeout", "500")
    found = json.loads(waited)["prospects"]
    assert [one["gain"] for one in found] == [0.05, 0.1, 0.2]
    assert found[0]["probability"] == 0.97
    assert "a gain of 5 % or more: 97 %" in shell.succeed("study", "prospects", name)
