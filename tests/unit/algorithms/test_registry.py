import subprocess
import sys

import pytest

from service.algorithms import registry
from service.algorithms.base import Cost
from service.algorithms.entry import Entry
from service.core.errors import InvalidInput
from service.core.options import Option
from service.core.problem import Objective, Problem
from service.core.space import FloatParameter, Space

PROBLEM = Problem.build(
    Space.build([FloatParameter("x", 0, 1)]), [Objective("a", "minimize"), Objective("b", "minimize")]
)


def test_names_and_costs() -> None:
    assert len(set(registry.names())) == len(registry.names())
    cheap = {"random", "sobol", "lhs", "grid", "ga", "sa", "nsga2"}
    assert {"gp", *cheap} <= set(registry.names())
    assert registry.describe("gp").cost == Cost.COSTLY
    assert all(registry.describe(name).cost == Cost.CHEAP for name in cheap)


def test_the_refusal_of_an_unknown_algorithm_lists_the_known_ones() -> None:
    for ask in (
        lambda: registry.describe("gpp"),
        lambda: registry.validate("gpp", {}, PROBLEM),
        lambda: registry.create("gpp", PROBLEM, seed=0, options={}),
    ):
        with pytest.raises(InvalidInput) as caught:
            ask()
        assert caught.value.data == {
            "field": "algorithm.name",
            "value": "gpp",
            "allowed": "one of " + ", ".join(registry.names()),
        }


@pytest.fixture
def without_optuna(monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment of a service without the extra `tpe`: an import of Optuna fails."""
    monkeypatch.setitem(sys.modules, "optuna", None)


@pytest.mark.usefixtures("without_optuna")
def test_an_algorithm_that_is_not_installed_names_the_extra() -> None:
    with pytest.raises(InvalidInput) as caught:
        registry.create("tpe", PROBLEM, seed=0, options={})
    assert caught.value.message == (
        "algorithm.name: 'tpe' needs optuna, which is not installed. "
        "Use another algorithm, or install it: pip install 'trimtab-service[tpe]'."
    )
    assert caught.value.data["field"] == "algorithm.name"
    # An earlier study still has its options.
    assert registry.validate("tpe", {}, PROBLEM)["candidates"] == 24


@pytest.mark.usefixtures("without_optuna")
def test_only_tpe_needs_an_extra_and_auto_never_chooses_it() -> None:
    assert [name for name in registry.names() if not registry.describe(name).is_installed] == ["tpe"]
    for budget in (1, 50, 1000, 100_000):
        for parallelism in (1, 1000):
            chosen = registry.resolve("auto", PROBLEM, budget=budget, parallelism=parallelism)
            registry.create(chosen.name, PROBLEM, seed=0, options=chosen.options)


def test_validate_completes_and_makes_exact() -> None:
    assert registry.validate("lhs", {}, PROBLEM) == {"block": 32, "centred": False}
    assert repr(registry.validate("lhs", {"block": 64.0}, PROBLEM)) == "{'block': 64, 'centred': False}"
    assert registry.validate("lhs", {"block": None}, PROBLEM) == {"block": 32, "centred": False}
    assert registry.validate("random", {}, PROBLEM) == {}


@pytest.mark.parametrize(
    ("name", "options", "field", "allowed"),
    [
        ("lhs", {"size": 3}, "algorithm.options.size", "the options of lhs: block, centred"),
        ("random", {"size": 3}, "algorithm.options.size", "no options: random has none"),
        ("lhs", {"block": 1}, "algorithm.options.block", "an integer from 2 to 4096"),
        ("lhs", {"block": 5000}, "algorithm.options.block", "an integer from 2 to 4096"),
        ("lhs", {"block": 2.5}, "algorithm.options.block", "an integer from 2 to 4096"),
        ("lhs", {"block": True}, "algorithm.options.block", "an integer from 2 to 4096"),
        ("lhs", {"block": "64"}, "algorithm.options.block", "an integer from 2 to 4096"),
        ("lhs", {"block": float("nan")}, "algorithm.options.block", "an integer from 2 to 4096"),
    ],
)
def test_validate_refuses(name: str, options: dict[str, object], field: str, allowed: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        registry.validate(name, options, PROBLEM)
    assert caught.value.data["field"] == field
    assert caught.value.data["allowed"] == allowed


@pytest.mark.parametrize(
    ("option", "good", "bad", "allowed"),
    [
        (Option("o", "bool", True, "."), [True, False], [1, "true"], "true or false"),
        (Option("o", "text", "a", ".", choices=("a", "b")), ["a", "b"], ["c", 1], "one of a, b"),
        (Option("o", "text", "a", "."), ["anything"], [1], "a text"),
        (Option("o", "float", 1.0, ".", min=0), [0, 0.5, 1e9], [-1, "1", float("inf"), False], "a number from 0"),
        (Option("o", "float", None, "."), [None, -1], ["a"], "a number"),
    ],
)
def test_option_casts(option: Option, good: list[object], bad: list[object], allowed: str) -> None:
    for value in good:
        assert option.cast(value, "o") == value
    assert option.allowed() == allowed
    for value in bad:
        with pytest.raises(InvalidInput):
            option.cast(value, "o")


def test_algorithm_that_cannot_have_so_many_objectives(monkeypatch: pytest.MonkeyPatch) -> None:
    single = Entry("single", ".", Cost.CHEAP, False, "service.algorithms.designs.sequences:Random", most_objectives=1)
    monkeypatch.setattr(registry, "_ENTRIES", {"single": single, "sobol": registry.describe("sobol")})
    with pytest.raises(InvalidInput, match=r"a single objective only\. Use .* for 2 objectives: sobol"):
        registry.validate("single", {}, PROBLEM)


def test_every_default_is_allowed() -> None:
    for name in registry.names():
        for option in registry.describe(name).options:
            assert option.cast(option.default, option.name) == option.default
            assert option.doc


def test_core_and_cheap_algorithms_import_nothing_heavy(programs_start: None) -> None:
    code = """
import sys
import service.core.encoding, service.core.estimates
from service.algorithms import registry, start
from service.core.problem import Objective, Problem
from service.core.space import FloatParameter, Space
problem = Problem.build(Space.build([FloatParameter("x", 0, 1)]), [Objective("a", "minimize")])
for name in ("random", "grid"):
    registry.create(name, problem, seed=0, options={}).suggest(1, cursor=0)
print([name for name in ("torch", "botorch", "django", "grpc", "celery", "scipy") if name in sys.modules])
registry.create("sobol", problem, seed=0, options={}).suggest(1, cursor=0)
print([name for name in ("torch", "botorch", "django", "grpc", "celery") if name in sys.modules])
"""
    printed = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert printed.splitlines() == ["[]", "[]"]
