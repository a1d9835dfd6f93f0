"""Weights and thresholds are learned from records with known applications."""

from dataclasses import astuple, replace

import pytest

from service.core.errors import InvalidInput
from service.matching.linkage import learning
from service.matching.linkage.job import Job
from service.matching.linkage.learning import Labelled, Quality, learn, precision_recall
from service.matching.linkage.score import USUAL, Weights
from tests.factories.jobs import CLUSTER_NODES, Scenario


def labelled(count: int, users: int = 10, applications: int = 40) -> list[Labelled]:
    return [Labelled(job, label) for job, label in Scenario(users, applications).labelled(count)]


def test_learned_weights_match_better_than_the_usual_ones() -> None:
    records = labelled(600)
    learned = learn(records, CLUSTER_NODES)
    assert sum(astuple(learned.weights)) == pytest.approx(1)
    # A program is always sbatch, and a time says nothing of an application.
    weights = learned.weights
    assert weights.program + weights.second + weights.minute < 0.05 < min(weights.name, weights.path)
    others = [Labelled(job, label) for job, label in Scenario(10, 40).labelled(600, draw=1)]
    (usual,) = precision_recall(others, [0.77], CLUSTER_NODES, USUAL)
    (better,) = precision_recall(others, [learned.threshold], CLUSTER_NODES, learned.weights)
    assert better.precision > max(usual.precision, 0.95)
    assert better.recall > max(usual.recall, 0.95)
    held_out = next(quality for quality in learned.qualities if quality.threshold == learned.threshold)
    assert min(held_out.precision, held_out.recall) > 0.95


def plain(record: Labelled) -> Job:
    assert isinstance(record.job, Job)
    return record.job


def test_the_same_records_give_the_same_weights() -> None:
    records = labelled(200)
    assert learn(records, CLUSTER_NODES) == learn(records, CLUSTER_NODES)


def test_precision_and_recall_count_each_record_once() -> None:
    job = plain(labelled(1)[0])
    other = replace(job, user="somebody", name="xyz", nodes=CLUSTER_NODES)
    records = [
        *(Labelled(job, "a") for _ in range(2)),  # right with a score of 1
        *(Labelled(other, "b") for _ in range(3)),  # one of the first two is the latest but itself, and also right
        Labelled(replace(job, name=job.name + "x"), "c"),  # wrong, since it is the only one
    ]
    exact, close = precision_recall(records, [1.0, 0.9], CLUSTER_NODES, Weights(user=1, name=1))
    assert exact == Quality(1.0, 1.0, 1.0)
    assert close == Quality(0.9, 5 / 6, 1.0)


def test_no_accepted_match_has_a_recall_of_0() -> None:
    records = [Labelled(replace(plain(record), user=str(place)), "a") for place, record in enumerate(labelled(3))]
    assert precision_recall(records, [1.0], CLUSTER_NODES) == [Quality(1.0, 1.0, 0.0)]
    assert precision_recall([], [0.5], CLUSTER_NODES) == [Quality(0.5, 1.0, 0.0)]


def test_many_records_are_sampled(monkeypatch: pytest.MonkeyPatch) -> None:
    records = labelled(500)
    monkeypatch.setattr(learning, "MOST_RECORDS", 7)
    (quality,) = precision_recall(records, [0.77], CLUSTER_NODES)
    assert 0 < quality.recall < 1
    assert quality.recall * 7 == pytest.approx(round(quality.recall * 7))


def test_too_few_records_are_refused() -> None:
    with pytest.raises(InvalidInput, match="two labels"):
        learn([Labelled(record.job, "a") for record in labelled(50)], CLUSTER_NODES)
