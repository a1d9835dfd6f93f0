"""Tests of the algorithms that order functions, and of the locality of their layouts."""

import itertools
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.agent.workloads.shared import WORKLOADS, module_of

WORKLOAD = WORKLOADS / "function-placement"
ordering, locality, graphs = (module_of(WORKLOAD, name) for name in ("ordering", "locality", "graph"))
NAMES = "ABCDEFGH"
# [ottoni-2017, figure 2]
PUBLISHED = {("A", "B"): 100.0, ("A", "C"): 40.0, ("B", "C"): 30.0, ("C", "D"): 90.0}


def graph_of(arcs: dict[tuple[str, str], float], size: int = 1000) -> Any:
    """Return a call graph in which a function's samples are its callers' arcs."""
    names = sorted({name for arc in arcs for name in arc})
    time = {name: sum(weight for (_, callee), weight in arcs.items() if callee == name) for name in names}
    return graphs.CallGraph(dict.fromkeys(names, size), time, arcs)


graph_strategy = st.dictionaries(
    st.tuples(st.sampled_from(NAMES), st.sampled_from(NAMES)).filter(lambda arc: arc[0] != arc[1]),
    st.integers(1, 1000).map(float),
    min_size=1,
).map(graph_of)


@pytest.mark.parametrize(
    ("algorithm", "order", "cost"),
    [(ordering.pettis_hansen, "BACD", 260), (ordering.call_chain_clustering, "ABCD", 170)],
)
def test_the_published_example(algorithm: Any, order: str, cost: int) -> None:
    """Figure 6 of the paper, with functions of 1,000 bytes."""
    graph = graph_of(PUBLISHED)
    found = algorithm(graph)
    assert "".join(found) == order
    assert locality.cost(graph, locality.addresses_of(found, graph.size)) == cost * 1000


@pytest.mark.parametrize("algorithm", [ordering.pettis_hansen, ordering.call_chain_clustering])
@given(graph=graph_strategy)
def test_each_function_has_one_place(algorithm: Any, graph: Any) -> None:
    assert sorted(algorithm(graph)) == sorted(graph.time)


@pytest.mark.parametrize("algorithm", [ordering.pettis_hansen, ordering.call_chain_clustering])
@given(graph=graph_strategy, draws=st.randoms())
def test_the_order_of_the_input_does_not_matter(algorithm: Any, graph: Any, draws: Any) -> None:
    arcs = list(graph.arcs.items())
    draws.shuffle(arcs)
    assert algorithm(graph_of(dict(arcs))) == algorithm(graph)


@given(graph=graph_strategy)
def test_pettis_hansen_puts_the_ends_of_the_heaviest_arc_together(graph: Any) -> None:
    """Both directions of a call count as one arc, and nothing comes between its ends later."""
    weights = {
        frozenset(pair): graph.arcs.get(pair, 0) + graph.arcs.get(pair[::-1], 0)
        for pair in itertools.combinations(sorted(graph.time), 2)
    }
    heaviest = max(weights.values())
    order = ordering.pettis_hansen(graph)
    neighbours = {frozenset(pair) for pair in itertools.pairwise(order)}
    assert any(weights[pair] == heaviest for pair in neighbours)


@given(graph=graph_strategy)
def test_c3_puts_the_hottest_function_after_its_likeliest_caller(graph: Any) -> None:
    order = ordering.call_chain_clustering(graph, threshold=1 << 20)
    hottest = min(graph.time, key=lambda name: (-graph.time[name], name))
    _, caller = min((-weight, caller) for (caller, callee), weight in graph.arcs.items() if callee == hottest)
    # the first merge of all: only functions that the callee's cluster gets later follow it
    assert order[order.index(caller) + 1] == hottest


@given(graph=graph_strategy)
def test_c3_merges_no_cluster_above_its_threshold(graph: Any) -> None:
    """Functions that are larger than the threshold stay alone, and are sorted by their samples for each byte."""
    order = ordering.call_chain_clustering(graph, threshold=999)
    assert [graph.time[name] for name in order] == sorted(graph.time.values(), reverse=True)


def test_rare_arcs_are_ignored() -> None:
    graph = graph_of({**PUBLISHED, ("D", "B"): 1.0})
    assert ("D", "B") not in graph.without_rare(0.01).arcs
    assert graph.without_rare(0.009).arcs == graph.arcs
    assert graph.without_rare(0.01).time == graph.time


def test_figures_of_a_layout() -> None:
    graph = graph_of({("A", "B"): 3.0, ("B", "C"): 1.0}, size=100)
    figures = locality.locality(graph, {"A": 3950, "B": 4050, "C": 3 << 20})
    assert figures["calls_64b"] == 75
    assert figures["calls_4k"] == 75
    assert figures["calls_2m"] == 75
    assert figures["call_distance"] == (3 * 50 + (3 << 20) - 4100) / 4
    assert figures["hot_pages"] == 3  # B is on two pages, C on another one; A has no samples


def test_a_graph_is_the_same_after_a_file() -> None:
    graph = graphs.CallGraph({"A": 10, "B": 20}, {"A": 1.0, "B": 2.0}, {("A", "B"): 3.0})
    assert graphs.CallGraph.from_json(json.loads(json.dumps(graph.to_json()))) == graph


def test_samples_become_a_call_graph() -> None:
    symbols = graphs.Symbols([("main", 100, 50), ("work", 150, 20), ("alias", 150, 20), ("leaf", 200, 10)])
    script = (
        "  96 alias+0x5 (/bin/program)\n  70 main+0xa (/bin/program)\n\n"
        "  c8 leaf+0x1 (/bin/program)\n  96 work+0x14 (/bin/program)\n  70 main+0xa (/bin/program)\n\n"
        "  10 memcpy+0x1 (/lib/libc.so)\n  96 work+0x5 (/bin/program)\n\n"
    )
    stacks = graphs.stacks_of(script, graphs.Path("/bin/program"), symbols)
    assert stacks == [[155, 110], [201, 170, 110], [0, 155]]
    graph = graphs.graph_of(stacks, symbols)
    # `work` has one of two names; a sample in another library does not count; 170 is the end of a call in `work`
    assert symbols.with_aliases(["alias", "leaf"]) == ["alias", "work", "leaf"]
    assert graph.time == {"alias": 1, "main": 0, "leaf": 1}
    assert graph.arcs == {("main", "alias"): 1, ("alias", "leaf"): 1}
