# /// script
# requires-python = ">=3.11,<3.12"
# dependencies = ["HEBO==0.3.6"]
#
# [tool.uv]
# # The release for which HEBO asks cannot be built for Python 3.11.
# override-dependencies = ["gpy>=1.13"]
# ///
"""HEBO with its defaults. It knows no conditions: conditional parameters are always active for it."""

from typing import Any

import numpy as np
import pandas as pd
import torch
from hebo.design_space.design_space import DesignSpace
from hebo.optimizers.hebo import HEBO
from line import serve


def described(one: dict[str, Any]) -> dict[str, Any]:
    match one["kind"]:
        case "float":
            return {"name": one["name"], "type": "pow" if one["log"] else "num", "lb": one["min"], "ub": one["max"]}
        case "int":
            kind = "pow_int" if one["log"] else "int"
            return {"name": one["name"], "type": kind, "lb": one["min"], "ub": one["max"]}
        case "ordinal":
            return {"name": one["name"], "type": "int", "lb": 0, "ub": len(one["values"]) - 1}
        case "bool":
            return {"name": one["name"], "type": "bool"}
    return {"name": one["name"], "type": "cat", "categories": one["values"]}


class Hebo:
    def __init__(self, problem: dict[str, Any]) -> None:
        np.random.seed(problem["seed"])
        torch.manual_seed(problem["seed"])
        torch.set_num_threads(1)
        self._parameters = problem["parameters"]
        self._hebo = HEBO(
            DesignSpace().parse([described(one) for one in self._parameters]), scramble_seed=problem["seed"]
        )
        self._asked = pd.DataFrame()

    def ask(self, count: int) -> list[dict[str, Any]]:
        self._asked = self._hebo.suggest(n_suggestions=count)
        return [self._values(row) for row in self._asked.to_dict("records")]

    def tell(self, values: list[float]) -> None:
        self._hebo.observe(self._asked, np.array(values)[:, None])

    def recommend(self) -> dict[str, Any]:
        return self._values(self._hebo.best_x.to_dict("records")[0])

    def _values(self, row: dict[str, Any]) -> dict[str, Any]:
        ordinal = {one["name"]: one["values"] for one in self._parameters if one["kind"] == "ordinal"}
        return {name: ordinal[name][int(value)] if name in ordinal else value for name, value in row.items()}


if __name__ == "__main__":
    serve(Hebo)
