import itertools
import time

from hypothesis import given
from hypothesis import strategies as st

from service.core.lattice import Lattice
from service.core.space import BoolParameter, Condition, Configuration, IntParameter, Space
from service.testing.random_spaces import small_spaces


def by_brute_force(space: Space) -> list[Configuration]:
    """All distinct feasible configurations, by trying the product of all values."""
    grids = [parameter.grid() or () for parameter in space.parameters]
    found: dict[str, Configuration] = {}
    for values in itertools.product(*grids):
        configuration = space.prune(dict(zip(space.names(), values, strict=True)))
        if space.feasible(configuration):
            found[space.key(configuration)] = configuration
    return list(found.values())


def lattice_of(space: Space) -> Lattice:
    assert space.lattice is not None
    return space.lattice


@given(small_spaces())
def test_walks_through_every_configuration_once(space: Space) -> None:
    walked = [one for _, one in lattice_of(space).walk(0) if one is not None]
    assert sorted(map(space.key, walked)) == sorted(map(space.key, by_brute_force(space)))
    assert all(list(one) == [name for name in space.names() if name in one] for one in walked)
    assert all(repr(space.validate(one)) == repr(one) for one in walked)
    assert space.enumerate(len(walked)) == walked
    if walked:
        assert space.enumerate(len(walked) - 1) is None


@given(small_spaces(), st.integers(0, 200))
def test_the_lattice_continues_from_any_index(space: Space, steps: int) -> None:
    lattice = lattice_of(space)
    whole = list(lattice.walk(0))
    steps = min(steps, len(whole) - 1)
    assert list(lattice.walk(whole[steps][0])) == whole[steps + 1 :]
    assert whole[-1][0] == lattice.size


@given(small_spaces())
def test_size_is_the_number_of_distinct_configurations(space: Space) -> None:
    assert lattice_of(space).size == len(by_brute_force(Space.build(space.parameters)))


def test_huge_lattices_cost_nothing() -> None:
    flags = [BoolParameter(f"b{index}") for index in range(60)]
    child = IntParameter("n", -(2**62), 2**62, condition=Condition("b3", (True,)))
    lattice = lattice_of(Space.build([*flags, child]))
    assert lattice.size == 2**59 + 2**59 * (2**63 + 1)
    started = time.thread_time()
    near_the_end = next(lattice.walk(lattice.size - 1))
    assert near_the_end[1] == dict.fromkeys((flag.name for flag in flags), True) | {"n": 2**62}
    assert time.thread_time() - started < 5, "the lattice was walked through from its beginning"


def test_constraints_cut_off_whole_blocks() -> None:
    flags = [BoolParameter(f"b{index}") for index in range(40)]
    lattice = lattice_of(Space.build(flags, ["b0 == True", "b1 + b2 == 2"]))
    steps = list(itertools.islice(lattice.walk(0), 5))
    # Without b0; with it, and neither or one of b1 and b2; then the first that is feasible.
    assert [one is None for _, one in steps] == [True, True, True, True, False]


def test_a_chain_of_conditions_with_all_values_has_one_tree_for_each_parameter() -> None:
    """Each value of a parent makes the same child active, so there are 2**49 paths to the last parameter."""
    values = (True, False)
    chain = [
        BoolParameter(f"b{place}", condition=Condition(f"b{place - 1}", values) if place else None)
        for place in range(50)
    ]
    space = Space.build(chain, ["b0 or b49"])
    assert lattice_of(space).size == space.cardinality() == 2**50
    assert lattice_of(space.restrict({"b49": True})).size == 2**49
    (_, first), (_, last) = next(lattice_of(space).walk(0)), next(lattice_of(space).walk(2**50 - 1))
    assert first is None, "the constraint is evaluated with the tree of its names"
    assert last == dict.fromkeys(space.names(), True)


def test_wide_trees_of_conditions_are_walked_once() -> None:
    values = tuple(range(10))
    parents = [IntParameter(f"p{place}", 0, 9) for place in range(10)]
    children = [IntParameter(f"c{place}", 0, 9, condition=Condition(f"p{place % 10}", values)) for place in range(900)]
    space = Space.build([*parents, *children])
    assert lattice_of(space).size == 10**910
    assert next(lattice_of(space).walk(10**910 - 1))[1] == dict.fromkeys(space.names(), 9)
