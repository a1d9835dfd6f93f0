"""Study files: what they mean, and what is wrong with wrong ones."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

import trimtab
from trimtab.cli import study_file
from trimtab.errors import InvalidInput
from trimtab.spec import Execution, Placement, StudySpec

WHOLE = """
name: flags-1
parameters:
  x: {type: float, min: 1e-3, max: 10, log: true}
  n: {type: int, min: 1, max: 16, factor: 2, default: 4}
  block: {type: ordinal, values: [4, 16, on]}
  alg: {type: categorical, values: [a, b]}
  arenas: {type: int, min: 1, max: 8, condition: {parent: alg, values: [a]}}
  huge: {type: boolean, default: false}
constraints: ["n * 4 <= block"]
objectives: [{minimize: seconds, unit: s}, {maximize: rate}]
algorithm: {name: gp, options: {start: 5}}
seed: 3
noisy: false
budget: {max_trials: 30, max_time: 2m}
trial_timeout: 60
placement: {spread: false}
start_from: [flags-0, other]
"""


def load(tmp_path: Path, text: str) -> study_file.StudyFile:
    path = tmp_path / "study.yaml"
    path.write_text(text)
    return study_file.load(path)


def test_a_whole_file(tmp_path: Path) -> None:
    file = load(tmp_path, WHOLE)
    assert file.space() == [
        trimtab.Float("x", 0.001, 10, log=True),
        trimtab.Int("n", 1, 16, factor=2, default=4),
        trimtab.Ordinal("block", [4, 16, "on"]),
        trimtab.Categorical("alg", ["a", "b"]),
        trimtab.Int("arenas", 1, 8, when=("alg", ["a"])),
        trimtab.Bool("huge", default=False),
    ]
    assert file.objectives == [trimtab.Minimize("seconds", "s"), trimtab.Maximize("rate")]
    assert (file.algorithm, file.algorithm_options, file.seed, file.noisy) == ("gp", {"start": 5}, 3, False)
    assert (file.max_trials, file.max_time, file.trial_timeout) == (30, 120.0, 60.0)
    assert file.placement == Placement(exclusive=True, spread=False)
    assert file.start_from == ["flags-0", "other"]


def test_what_is_exported_can_be_read_again() -> None:
    spec = StudySpec(
        space=tuple(study_file.parse(yaml.load(WHOLE, study_file._Loader)).space()),
        objectives=(trimtab.Maximize("rate", "1/s"),),
        constraints=("n <= 4",),
        algorithm="sobol",
        algorithm_options={"scramble": True},
        seed=1,
        noisy=True,
        max_trials=5,
        max_time=7.5,
        execution=Execution("gcc-flags", "small", "ab", 3, 9.0, Placement(exclusive=False)),
        start_from=("flags-0",),
    )
    file = study_file.parse(json.loads(json.dumps(study_file.dump("again", spec))))
    assert file.name == "again"
    assert tuple(file.space(spec.space)) == spec.space
    assert tuple(file.objectives) == spec.objectives
    assert (file.component, file.application, file.digest) == ("gcc-flags", "small", "ab")
    assert (file.parallelism, file.trial_timeout, file.max_trials, file.max_time) == (3, 9.0, 5, 7.5)
    assert file.placement == Placement(exclusive=False, spread=True)
    assert file.start_from == ["flags-0"]


POLICIES = """
parameters: {x: {type: float, min: 0, max: 1, default: 0.5}}
objectives: [{minimize: seconds}]
budget: {max_node_hours: 5}
outcome_constraints: ["mb <= 4096"]
resampling: adaptive
estimator: {name: quantile, options: {q: 0.9}}
pruning: [default, {name: limit, options: {seconds: 60}}]
stopping: {rule: best_improvement, threshold: 0.01, trials: 20}
final_check: {width: 0.1}
"""


def test_policies(tmp_path: Path) -> None:
    file = load(tmp_path, POLICIES)
    assert (file.max_node_hours, file.outcome_constraints) == (5, ["mb <= 4096"])
    assert (file.resampling, file.estimator) == (trimtab.Policy("adaptive"), trimtab.Policy("quantile", q=0.9))
    assert file.pruning == [trimtab.Policy("default"), trimtab.Policy("limit", seconds=60)]
    assert file.stopping == {"rule": "best_improvement", "threshold": 0.01, "trials": 20}
    assert file.final_check == trimtab.FinalCheck(width=0.1)
    assert load(tmp_path, POLICIES.replace("{width: 0.1}", "true")).final_check == trimtab.FinalCheck()
    assert load(tmp_path, POLICIES.replace("{width: 0.1}", "false")).final_check is None


def test_nothing_said_of_policies_leaves_them_to_the_service(tmp_path: Path) -> None:
    file = load(tmp_path, "parameters: {x: {type: boolean}}\nobjectives: [{minimize: seconds}]")
    assert file.algorithm == "auto"
    assert (file.resampling, file.estimator, file.pruning, file.stopping, file.final_check) == (
        None,
        None,
        [],
        None,
        None,
    )


def test_exported_policies_can_be_read_again(tmp_path: Path) -> None:
    file = load(tmp_path, POLICIES)
    spec = StudySpec(
        space=tuple(file.space()),
        objectives=(trimtab.Minimize("seconds"),),
        constraints=(),
        algorithm="random",
        algorithm_options={},
        seed=1,
        noisy=True,
        max_trials=None,
        max_time=None,
        execution=None,
        max_node_hours=file.max_node_hours,
        outcome_constraints=tuple(file.outcome_constraints),
        resampling=file.resampling,
        estimator=file.estimator,
        pruning=tuple(file.pruning),
        stopping=file.stopping,
        final_check=file.final_check,
    )
    again = study_file.parse(json.loads(json.dumps(study_file.dump("again", spec))))
    for name in ("resampling", "estimator", "pruning", "stopping", "final_check", "outcome_constraints"):
        assert getattr(again, name) == getattr(file, name), name


COMPONENT = [trimtab.Int("inline", 10, 1000, log=True, default=100), trimtab.Bool("unroll", default=False)]


def test_a_component_s_parameters_are_changed_and_chosen(tmp_path: Path) -> None:
    head = "component: gcc\nobjectives: [{minimize: seconds}]\n"
    assert load(tmp_path, head).space(COMPONENT) == COMPONENT
    changed = load(tmp_path, head + "parameters: {inline: {max: 400}}\nonly: [inline]")
    assert changed.space(COMPONENT) == [trimtab.Int("inline", 10, 400, log=True, default=100)]
    listed = load(tmp_path, head + "parameters: {inline: {type: ordinal, values: [10, 100], default: 10}}")
    assert listed.space(COMPONENT) == [trimtab.Ordinal("inline", [10, 100], default=10), COMPONENT[1]]
    with pytest.raises(
        InvalidInput, match=r"parameters: 'inlin' is not allowed\. Use the component's own: inline, unroll"
    ):
        load(tmp_path, head + "parameters: {inlin: {max: 400}}").space(COMPONENT)
    with pytest.raises(InvalidInput, match="only: 'x'"):
        load(tmp_path, head + "only: [x]").space(COMPONENT)


@pytest.mark.parametrize(("text", "seconds"), [("90", 90), ("90s", 90), ("1.5h", 5400), ("2 m", 120), ("1d", 86400)])
def test_times(tmp_path: Path, text: str, seconds: float) -> None:
    file = load(tmp_path, f"component: c\nobjectives: [{{minimize: s}}]\nbudget: {{max_time: {text}}}")
    assert file.max_time == seconds


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("objectives: []", "objectives: [] is not allowed. Use at least one"),
        (
            "objectives: [{minimise: s}]",
            "a key of objectives[0]: 'minimise' is not allowed. Use minimize, maximize, unit",
        ),
        ("objectives: [{minimize: s, maximize: t}]", "objectives[0]: "),
        ("budgets: {}", "a key of the file: 'budgets' is not allowed. Use name, component"),
        ("budget: {max_time: soon}", "budget.max_time: 'soon' is not allowed. Use a time such as 90"),
        ("budget: {max_trials: 1.5}", "budget.max_trials: 1.5 is not allowed. Use a whole number"),
        ("seed: true", "seed: True is not allowed. Use a whole number"),
        ("noisy: yes", "noisy: 'yes' is not allowed. Use true or false"),
        ("parameters: [x]", "parameters: ['x'] is not allowed. Use a mapping"),
        ("parameters: {x: {type: real}}", "parameters.x.type: 'real' is not allowed. Use float, int"),
        ("parameters: {x: {type: float, min: 1}}", "parameters.x.max: a value is missing. Use a number"),
        ("parameters: {x: {type: int, min: a, max: 2}}", "parameters.x.min: 'a' is not allowed. Use a whole number"),
        (
            "parameters: {x: {type: bool, min: 1}}",
            "a key of parameters.x: 'min' is not allowed. Use type, default, condition",
        ),
        ("parameters: {x: {type: ordinal, values: 3}}", "parameters.x.values: 3 is not allowed. Use a list"),
        (
            "parameters: {x: {type: ordinal, values: [[]]}}",
            "parameters.x.values: [] is not allowed. Use a number, a text",
        ),
        ("constraints: x < 1", "constraints: 'x < 1' is not allowed. Use a list"),
        ("pruning: default", "pruning: 'default' is not allowed. Use a list"),
        ("pruning: [{named: limit}]", "a key of pruning[0]: 'named' is not allowed. Use name, options"),
        ("resampling: {options: {n: 2}}", "resampling.name: a value is missing. Use a text"),
        ("final_check: {speed: 1}", "a key of final_check: 'speed' is not allowed. Use width, max_trials, level"),
        ("stopping: soon", "stopping: 'soon' is not allowed. Use a mapping"),
    ],
)
def test_a_wrong_field_is_named_with_its_file(tmp_path: Path, change: str, message: str) -> None:
    fields: dict[str, Any] = yaml.safe_load("{parameters: {x: {type: bool}}, objectives: [{minimize: s}]}")
    fields |= yaml.load(change, study_file._Loader)
    with pytest.raises(InvalidInput) as caught:
        load(tmp_path, json.dumps(fields)).space()
    assert message in caught.value.message


def test_a_file_that_is_no_yaml(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"study\.yaml is not YAML: .*line 1"):
        load(tmp_path, "{a: [")
    with pytest.raises(InvalidInput, match="the file: a value is missing"):
        load(tmp_path, "")
    with pytest.raises(InvalidInput, match=r"nowhere\.yaml cannot be read: No such file"):
        study_file.load(tmp_path / "nowhere.yaml")
