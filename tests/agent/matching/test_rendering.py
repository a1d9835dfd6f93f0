"""Which components can be applied to a job, and what they become."""

from collections.abc import Callable
from pathlib import Path

import pytest

from trimtab_agent.components.generated import Generator
from trimtab_agent.components.loader import load
from trimtab_agent.errors import NotForJobsError
from trimtab_agent.matching.decision import decide
from trimtab_agent.matching.rendering import render
from trimtab_agent.matching.request import Request
from trimtab_agent.matching_rules import ComponentUse, MatchingRules
from trimtab_agent.policy import Policy
from trimtab_agent.submissions import Decision, Match
from trimtab_components.schema import Component, Scalar

WORKLOADS = Path(__file__).parents[3] / "agents" / "workloads"
MPI = """
name: mpi
parameters:
  bytes: {type: int, min: 1, max: 1048576, default: 1024}
  algorithm: {type: int, min: 0, max: 6, default: 0, env: OMPI_MCA_coll_tuned_bcast_algorithm, omit_default: true}
  segment: {type: int, min: 0, max: 65536, default: 0}
  binding: {type: categorical, values: [core, socket], default: core, scheduler: "--hint={value}"}
env: {OMPI_MCA_coll_tuned_use_dynamic_rules: "1", OMPI_MCA_segment: "{segment}", HOME_OF_IT: "{component}/etc"}
preload: ["{component}/lib{segment}.so"]
scheduler: {options: ["--mem-bind={binding}"]}
applications:
  bcast: {command: [mpirun, ./collective, bcast, "{bytes}"]}
  other: {command: [mpirun, ./collective, other]}
metrics:
  seconds: wall_time
"""
WAYS = """
name: ways
parameters:
  a: {type: int, min: 0, max: 9, default: 0, WAY}
build: {commands: [[cc, BUILD, x.c]]}
header: [[echo, HEADER]]
templates: [{source: t.txt, target: t.txt}]
scheduler: {directives: ["#BB x=DIRECTIVE"]}
applications:
  main: {command: [run, COMMAND], env: {V: "ENV"}}
metrics:
  seconds: wall_time
"""


def test_variables_libraries_and_options(component: Callable[..., Component]) -> None:
    made = component(MPI)
    use = ComponentUse(workload=("bytes",))
    found = render(made, "bcast", {"bytes": 65536, "algorithm": 6, "segment": 8, "binding": "socket"}, use)
    assert found.environment == {
        "OMPI_MCA_coll_tuned_use_dynamic_rules": "1",
        "OMPI_MCA_segment": "8",
        "OMPI_MCA_coll_tuned_bcast_algorithm": "6",
        "HOME_OF_IT": f"{made.folder}/etc",
    }
    assert found.tuned == {"OMPI_MCA_segment", "OMPI_MCA_coll_tuned_bcast_algorithm"}
    assert found.preload == [f"{made.folder}/lib8.so"]
    assert found.options == [("mem-bind", "socket"), ("hint", "socket")]
    assert "LD_PRELOAD" in found.variables


def test_a_workload_s_parameter_must_be_named(component: Callable[..., Component]) -> None:
    made = component(MPI)
    values: dict[str, Scalar] = {"bytes": 65536, "algorithm": 6}
    with pytest.raises(NotForJobsError, match=r"parameter 'bytes' reaches the program by .* \(applications.bcast\)"):
        render(made, "bcast", values, ComponentUse())
    # An application that does not use it, or its default, needs nothing.
    render(made, "bcast", {"bytes": 1024, "algorithm": 6}, ComponentUse())


def test_a_job_keeps_its_own_workload(component: Callable[..., Component]) -> None:
    use = ComponentUse(workload=("bytes", "segment", "binding"))
    found = render(component(MPI), "bcast", {"bytes": 1, "segment": 8, "binding": "socket", "algorithm": 6}, use)
    assert found.options == []
    assert found.tuned == {"OMPI_MCA_coll_tuned_bcast_algorithm"}
    assert "OMPI_MCA_segment" not in found.environment


def test_the_administrator_s_installation(component: Callable[..., Component]) -> None:
    use = ComponentUse(("/opt/x.so",), {"OMPI_MCA_segment": "4", "MORE": "1"}, ("HOME_OF_IT",))
    found = render(component(MPI), "other", {"segment": 8}, use)
    assert found.preload == ["/opt/x.so"]
    assert found.environment == {"OMPI_MCA_coll_tuned_use_dynamic_rules": "1", "OMPI_MCA_segment": "4", "MORE": "1"}


@pytest.mark.parametrize(
    ("place", "way"),
    [
        ("WAY", "a command-line flag (parameters.a.flag)"),
        ("BUILD", "the build (build)"),
        ("HEADER", "a command before the program (header)"),
        ("DIRECTIVE", "a line of the batch script (scheduler.directives)"),
        ("COMMAND", "the command or environment of an application (applications.main)"),
        ("ENV", "the command or environment of an application (applications.main)"),
        ("TEMPLATE", "a file that is written for each trial (templates)"),
    ],
)
def test_every_other_way_is_refused(component: Callable[..., Component], place: str, way: str) -> None:
    text, template = WAYS, "nothing"
    if place == "WAY":
        text = text.replace("WAY", 'flag: "--a={value}"')
    else:
        # It also has a variable, which alone would do.
        text = text.replace("WAY", "env: A_VALUE")
        text, template = (
            text.replace(f" {place}", ' "{a}"').replace(f"={place}", "={a}"),
            "${a}" * (place == "TEMPLATE"),
        )
        text = text.replace('V: "ENV"', 'V: "{a}"') if place == "ENV" else text
    made = component(text, t__txt=template)
    with pytest.raises(NotForJobsError) as caught:
        render(made, "main", {"a": 1}, ComponentUse())
    assert way in str(caught.value)
    render(made, "main", {"a": 0}, ComponentUse())


def test_components_that_ship_with_trimtab(tmp_path: Path) -> None:
    generator = Generator(tmp_path)
    reader = load(WORKLOADS / "small-read-optimizer" / "component.yaml", generator)
    values: dict[str, Scalar] = {"SRO_SEQUENCE_LENGTH": 50, "SRO_CLUSTER_THRESHOLD": 3}
    with pytest.raises(NotForJobsError, match="SRO_DIRECTORY names a folder of trials"):
        render(reader, "sro-1", values, ComponentUse())
    use = ComponentUse(("/opt/sro/libsro.so",), {"SRO_DIRECTORY": "/scratch"}, ("SRO_COUNTERS",))
    found = render(reader, "sro-1", values, use)
    assert found.preload == ["/opt/sro/libsro.so"]
    assert found.environment == {
        "SRO_DIRECTORY": "/scratch",
        "SRO_SEQUENCE_LENGTH": "50",
        "SRO_DSC_BINSIZE": "26214",
        "SRO_CLUSTER_THRESHOLD": "3",
        "SRO_PREFETCH_SIZE": "524288",
    }
    buffer = load(WORKLOADS / "burst-buffer" / "component.yaml", generator)
    with pytest.raises(NotForJobsError, match=r"by a command-line flag \(parameters.worker-threads.flag\)"):
        render(buffer, "sbb-1", {"worker-threads": 2}, ComponentUse())


def solver(component: Callable[..., Component], name: str, variable: str) -> Component:
    text = f"""
name: {name}
parameters:
  n: {{type: int, min: 0, max: 9, default: 0, env: {variable}}}
applications:
  main: {{command: [run]}}
metrics:
  seconds: wall_time
"""
    return component(text)


def test_the_best_of_two_records_for_one_variable_wins(component: Callable[..., Component]) -> None:
    components = {name: solver(component, name, v) for name, v in (("a", "N"), ("b", "N"), ("c", "OTHER"))}
    matches = [Match(f"rec-{name}", name, "", "main", {"n": n}, n / 10) for n, name in ((7, "a"), (9, "b"), (8, "c"))]
    policy = Policy(matching=MatchingRules(mode="apply", control_share=0.0))
    decided = decide(matches, components, policy, Request.of([("kind", "wrap")]))
    assert decided.environment == {"N": "9", "OTHER": "8"}
    assert [(one.record, one.decision) for one in decided.considered] == [
        ("rec-b", Decision.APPLIED),
        ("rec-c", Decision.APPLIED),
        ("rec-a", Decision.REFUSED),
    ]
    assert "Another record has set the variable N." in decided.considered[2].reason
    assert decided.marks == ["trimtab:rec-b:0.90", "trimtab:rec-c:0.80"]


@pytest.mark.parametrize(("draw", "control"), [(0.0, True), (0.049, True), (0.05, False), (0.99, False)])
def test_the_share_of_controls(component: Callable[..., Component], draw: float, control: bool) -> None:
    components = {"a": solver(component, "a", "N")}
    match = Match("rec", "a", "", "main", {"n": 1}, 0.9)
    policy = Policy(matching=MatchingRules(mode="apply"))
    decided = decide([match], components, policy, Request.of([("kind", "wrap")]), lambda: draw)
    assert (decided.considered[0].decision is Decision.CONTROL) == control
    assert decided.environment == ({} if control else {"N": "1"})
