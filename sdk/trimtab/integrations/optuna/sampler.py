"""The sampler of Optuna whose suggestions come from a study."""

import copy
import secrets
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import optuna
from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler, RandomSampler
from optuna.samplers._base import _process_constraints_after_trial
from optuna.trial import FrozenTrial, TrialState

from trimtab._internal.connection.forks import Guard
from trimtab.client import Client
from trimtab.errors import JsonValue, NotFound
from trimtab.integrations.foreign_names import study_name
from trimtab.integrations.optuna.link import Link, failure_of
from trimtab.study import Study

ConstraintsFunc = Callable[[FrozenTrial], Sequence[float]]


class TrimtabSampler(BaseSampler):
    """A sampler whose suggestions come from a Trimtab study.

    The Trimtab study has the name of the Optuna study. It holds the results of all Optuna trials: values, constraints,
    intermediate values of trials that Trimtab suggested, failures. Optuna's pruners and `n_jobs` work as before, and
    several processes may share one Optuna storage.

    The first trial, parameters that are new to the study, and parameters that the trial asks for in another range than
    before are sampled by `independent_sampler`.

    Args:
        client: the connection to the service. Default: `trimtab.Client()`, which reads TRIMTAB_URL and TRIMTAB_TOKEN
            or the login of `trimtab login`.
        name: the name of the Trimtab study. Default: the name of the Optuna study.
        algorithm, algorithm_options, noisy: as in `Client.create_study`. With `noisy`, good configurations are measured
            again.
        seed: the seed of the study and of `independent_sampler`; None: a random one.
        constraints_func: as in Optuna's samplers: returns numbers that are 0 or less where the constraints are met.
        independent_sampler: the sampler for parameters without a suggestion. Default: RandomSampler.
    """

    def __init__(
        self,
        client: Client | None = None,
        *,
        name: str | None = None,
        algorithm: str = "auto",
        algorithm_options: Mapping[str, JsonValue] | None = None,
        noisy: bool = True,
        seed: int | None = None,
        constraints_func: ConstraintsFunc | None = None,
        independent_sampler: BaseSampler | None = None,
    ) -> None:
        self._client = client or Client()
        self._name = name
        self._settings: dict[str, Any] = {
            "algorithm": algorithm,
            "algorithm_options": algorithm_options or {},
            "noisy": noisy,
            "seed": secrets.randbelow(2**31) if seed is None else seed,
        }
        self._constraints_func = constraints_func
        self._independent = independent_sampler or RandomSampler(seed=seed)
        self._guard = Guard()
        self._links: dict[str, Link] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name not in ("_guard", "_links")}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        self.__dict__.update(state)
        self._guard = Guard()
        self._links = {}

    def trimtab_study(self, study: optuna.Study) -> Study:
        """Return the Trimtab study of an Optuna study, for its verdict and its page in the console.

        Raises:
            NotFound: it does not exist before the first trial has ended.
        """
        found = self._link(study).load()
        if found is None:
            raise NotFound("study_not_found", f"Optuna study {study.study_name!r} has no completed trial yet.")
        return found

    # --- methods that Optuna calls

    def infer_relative_search_space(self, study: optuna.Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        if "fixed_params" in trial.system_attrs:  # an enqueued trial is not a suggestion
            return {}
        return self._link(study).distributions()

    def sample_relative(
        self, study: optuna.Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        if not search_space:
            return {}
        found = self._link(study).ask(trial, search_space)
        # Without a suggestion, as in an exhausted space, all values are independent.
        return found or {
            name: self._independent.sample_independent(study, trial, name, distribution)
            for name, distribution in search_space.items()
        }

    def sample_independent(
        self, study: optuna.Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        return self._independent.sample_independent(study, trial, param_name, param_distribution)

    def after_trial(
        self, study: optuna.Study, trial: FrozenTrial, state: TrialState, values: Sequence[float] | None
    ) -> None:
        if self._constraints_func is not None:
            _process_constraints_after_trial(self._constraints_func, study, trial, state)
        # The storage in memory returns its own object.
        ended = copy.deepcopy(study._storage.get_trial(trial._trial_id))
        ended.state = state
        ended.values = None if values is None else list(values)
        self._link(study).tell(ended, failure_of() if state is TrialState.FAIL else "")

    def reseed_rng(self) -> None:
        self._independent.reseed_rng()

    def _link(self, study: optuna.Study) -> "Link":
        with self._guard:
            if study.study_name not in self._links:
                name = self._name or study_name(study.study_name)
                self._links[study.study_name] = Link(study, self._client, name, self._settings)
            return self._links[study.study_name]
