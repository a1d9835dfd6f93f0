# /// script
# requires-python = ">=3.11,<3.12"
# dependencies = ["openbox==0.9.0"]
# ///
"""OpenBox with its defaults, which choose the model by the space."""

from tempfile import TemporaryDirectory
from typing import Any

from line import serve
from openbox import Advisor, Observation, SyncBatchAdvisor
from openbox import space as spaces


def space_of(parameters: list[dict[str, Any]], seed: int) -> Any:
    space = spaces.Space(seed=seed)
    made: dict[str, Any] = {}
    for one in parameters:
        name = one["name"]
        match one["kind"]:
            case "float":
                made[name] = spaces.Real(name, one["min"], one["max"], log=one["log"])
            case "int":
                made[name] = spaces.Int(name, one["min"], one["max"], log=one["log"])
            case "ordinal":
                made[name] = spaces.Ordinal(name, one["values"])
            case "bool":
                made[name] = spaces.Categorical(name, ["false", "true"])
            case _:
                made[name] = spaces.Categorical(name, one["values"])
    space.add_variables(list(made.values()))
    for one in parameters:
        if one["parent"]:
            active = [str(value).lower() if isinstance(value, bool) else value for value in one["active_for"]]
            space.add_condition(spaces.InCondition(made[one["name"]], made[one["parent"]], active))
    return space


class OpenBox:
    def __init__(self, problem: dict[str, Any]) -> None:
        self._flags = {one["name"] for one in problem["parameters"] if one["kind"] == "bool"}
        space = space_of(problem["parameters"], problem["seed"])
        # OpenBox writes a file of its log, by default to logs/ in the working directory.
        self._folder = TemporaryDirectory(prefix="openbox-")
        shared = {
            "random_state": problem["seed"],
            "output_dir": self._folder.name,
            "logger_kwargs": {"level": "ERROR"},
        }
        self._batch = problem["batch"]
        self._advisor: Any = (
            Advisor(space, **shared) if self._batch == 1 else SyncBatchAdvisor(space, batch_size=self._batch, **shared)
        )
        self._asked: list[Any] = []

    def ask(self, count: int) -> list[dict[str, Any]]:
        if self._batch == 1:
            self._asked = [self._advisor.get_suggestion() for _ in range(count)]
        else:
            self._asked = self._advisor.get_suggestions(batch_size=count)
        return [self._values(one) for one in self._asked]

    def tell(self, values: list[float]) -> None:
        for one, value in zip(self._asked, values, strict=True):
            self._advisor.update_observation(Observation(config=one, objectives=[value]))

    def recommend(self) -> dict[str, Any]:
        return self._values(self._advisor.get_history().get_incumbent_configs()[0])

    def _values(self, configuration: Any) -> dict[str, Any]:
        found = configuration.get_dictionary()
        return {name: value == "true" if name in self._flags else value for name, value in found.items()}


if __name__ == "__main__":
    serve(OpenBox)
