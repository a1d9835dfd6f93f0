"""Similar studies: distances of metrics, and the start that earlier studies teach, in a real service."""

import math
from pathlib import Path

import pytest

import trimtab
from tests.factories.agent import RealAgent
from tests.factories.patience import wait_for
from tests.factories.service import EmbeddedService
from tests.sdk.conftest import make_study
from trimtab import similar
from trimtab.errors import InvalidInput

COMPONENT = """
name: reader
parameters:
  size: {type: ordinal, values: [1, 2, 4, 8, 16], default: 1}
applications:
  small: {command: [python3, run.py, "2", "{size}"], files: [run.py]}
  small-too: {command: [python3, run.py, "2", "{size}"], files: [run.py]}
  large: {command: [python3, run.py, "16", "{size}"], files: [run.py]}
metrics:
  seconds: {type: regex, pattern: 'seconds=(\\S+)'}
  bytes: {type: regex, pattern: 'bytes=(\\S+)'}
"""
RUN = """
import sys

best, size = map(int, sys.argv[1:])
print(f"seconds={1 + abs(best - size)}")
print(f"bytes={1000 * best}")
"""


def test_distances_are_in_standard_deviations_of_logarithms() -> None:
    own = {"reads": 0.0, "same": 5.0, "only here": 1.0}
    others = [{"reads": math.e - 1, "same": 5.0}, {"reads": 0.0, "same": 5.0}, {"reads": -(math.e - 1), "same": 5.0}]
    spread = math.sqrt(0.5)
    assert similar.distances(own, others) == pytest.approx([1 / spread, 0, 1 / spread])
    assert similar.distances(own, []) == []
    assert similar.distances({}, others) == [0, 0, 0]


def test_the_nearest_study_teaches_the_start(
    client: trimtab.Client, embedded_service: EmbeddedService, tmp_path: Path
) -> None:
    home = tmp_path / "components" / "reader"
    home.mkdir(parents=True)
    (home / "component.yaml").write_text(COMPONENT)
    (home / "run.py").write_text(RUN)
    token = tmp_path / "token"
    token.write_text(embedded_service.token)
    token.chmod(0o600)

    def tuned(application: str, trials: int) -> trimtab.Study:
        name, spec = client.parse_study_file(
            f"component: reader\nname: similar-{application}\napplication: {application}\nalgorithm: grid\n"
            f"objectives: [{{minimize: seconds}}]\nbudget: {{max_trials: {trials}}}\nnoisy: false\n"
            "placement: {exclusive: false}\n"
        )
        assert name is not None
        return client.create_from_spec(name, spec)

    with RealAgent(tmp_path, embedded_service.grpc_address, token, home.parent, name="similar-agent"):
        earlier = [tuned("small", 5), tuned("large", 5)]
        wait_for(lambda: all(one.refresh().state.finished for one in earlier), "the earlier studies end")
        study = tuned("small-too", 1)
        assert similar.neighbours(earlier[0], earlier[1:])[0].study == "similar-large"
        wait_for(lambda: similar.default_metrics(study) != {}, "the default is measured")
    found = similar.neighbours(study, client.list_studies(component="reader"))
    assert [one.study for one in found] == ["similar-small", "similar-large"]
    assert found[0].distance == 0 < found[1].distance
    assert [one.params for one in found] == [{"size": 2}, {"size": 16}]


def test_what_is_found_is_enqueued_once(client: trimtab.Client, name: str) -> None:
    study = make_study(client, name)
    found = [
        similar.Neighbour("a", 0.1, {"n": 2, "block": 64, "gone": 1}),
        similar.Neighbour("b", 0.2, {"n": 2, "block": 64}),
        similar.Neighbour("c", 0.3, {"n": 16, "block": 4}),
    ]
    trials = similar.enqueue_best(study, found)
    assert [(one.params["n"], one.params["block"], one.origin) for one in trials] == [(2, 64, "enqueued")]
    assert [one.number for one in similar.enqueue_best(study, found)] == [trials[0].number]


def test_a_study_of_a_script_is_refused(client: trimtab.Client, name: str) -> None:
    with pytest.raises(InvalidInput, match="a study of a component"):
        similar.neighbours(make_study(client, name), [])
