"""Trials as runs of Weights & Biases. `pip install wandb`.

from trimtab.integrations.wandb import WandbLogger

logger = WandbLogger(project="tuning", console="https://tune.example.org")
study.optimize(fn, callbacks=[logger])      # or, for a study that agents run: logger.follow(study)
"""

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from trimtab.integrations.trial_logger import TrialLogger, digest, identity, steps
from trimtab.study import Study
from trimtab.trial import Trial, TrialState

try:
    import wandb
except ImportError as error:
    raise ImportError("trimtab.integrations.wandb needs the package wandb: pip install wandb") from error

__all__ = ["WandbLogger"]

# The fact that is written last: a run that has it is complete.
STATE = "trimtab/state"
# An empty file in the folder of a run that was written to its end.
COMPLETE = "trimtab-complete"
# A run is a trial, which another process has measured. The output, the code, the packages and the load of this process
# are no part of it.
QUIET: Mapping[str, Any] = {
    "silent": True,
    "console": "off",
    "disable_code": True,
    "disable_git": True,
    "x_disable_stats": True,
    "x_disable_meta": True,
    "x_save_requirements": False,
}


class WandbLogger(TrialLogger):
    """Copies each finished trial to a run of Weights & Biases: parameters, metrics of all steps, state, and a link.

    The runs of a study are a group with the study's name. Parameters are the run's config; the rest is in its summary
    under `trimtab/`. A trial that is neither COMPLETED nor PRUNED is a failed run. The id of a run comes from the study
    and the number of the trial. So a run that exists is found again: on the server, or offline in the folder `wandb`
    below `folder`.

    Args:
        project: the project's name. Default: as for wandb itself, WANDB_PROJECT.
        entity: the team or user. Default: as for wandb itself.
        folder: the folder for the files of runs. Default: the current folder.
        mode: "online" or "offline". Default: WANDB_MODE, else "online".
        console: the address of Trimtab's console, for links. Default: no links.

    Raises:
        ImportError: wandb is not installed (when the module is imported).
        InvalidInput: `console` is not an address.
    """

    def __init__(
        self,
        project: str | None = None,
        *,
        entity: str | None = None,
        folder: str | Path = ".",
        mode: str | None = None,
        console: str = "",
    ) -> None:
        super().__init__(console)
        self._project = project
        self._entity = entity
        self._folder = Path(folder)
        self._mode = mode
        self._guard = threading.Lock()
        self._logged: set[str] = set()

    def log(self, study: Study, trial: Trial) -> None:
        """Copy a finished trial, unless it has been copied already. Raises wandb.Error if wandb refuses it."""
        key = digest(study._address, identity(study), trial.number)
        with self._guard:
            if key in self._logged:
                return
            # wandb's own settings also read WANDB_MODE.
            chosen = {} if self._mode is None else {"mode": self._mode}
            settings = wandb.Settings(**QUIET, **chosen)
            if settings.mode != "offline" or not self._is_stored(key):
                self._write(study, trial, key, settings)
            self._logged.add(key)

    def _is_stored(self, key: str) -> bool:
        """Return whether the folder has the run, complete. Offline, wandb asks no server whether it exists."""
        return any((self._folder / "wandb").glob(f"offline-run-*-{key}/{COMPLETE}"))

    def _write(self, study: Study, trial: Trial, key: str, settings: "wandb.Settings") -> None:
        run = wandb.init(
            project=self._project,
            entity=self._entity,
            dir=self._folder,
            id=key,
            resume="allow",
            reinit="create_new",
            group=study.name,
            name=f"{study.name}-{trial.number}",
            job_type=trial.origin,
            config=dict(trial.params),
            settings=settings,
        )
        failed = trial.state not in (TrialState.COMPLETED, TrialState.PRUNED)
        try:
            if not (run.resumed and run.summary.get(STATE)):
                for step, metrics in steps(study, trial).items():
                    run.log(dict(metrics), step=step)
                facts = self._facts(study, trial)
                run.summary.update({f"trimtab/{name}": text for name, text in facts.items()})
        finally:
            run.finish(exit_code=int(failed))
        (Path(run.dir).parent / COMPLETE).touch()
