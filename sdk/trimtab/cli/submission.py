"""Creates the study that a file describes."""

from datetime import datetime
from typing import TYPE_CHECKING

import trimtab
from trimtab.cli.study_file import StudyFile

if TYPE_CHECKING:
    from trimtab.study import Study


def create(client: trimtab.Client, file: StudyFile, *, name: str | None, load_if_exists: bool) -> "Study":
    """The study of `file`, under `name` where it is given, else under the file's name or one made up.

    Raises:
        TrimtabError: as in `Client.create_study`.
    """
    own = client.component(file.component, file.digest).space if file.component is not None else ()
    return client.create_study(
        name or file.name or _made_up(file),
        space=file.space(own),
        objectives=file.objectives,
        constraints=file.constraints,
        algorithm=file.algorithm,
        algorithm_options=file.algorithm_options,
        seed=file.seed,
        noisy=file.noisy,
        max_trials=file.max_trials,
        max_time=file.max_time,
        component=file.component,
        application=file.application,
        digest=file.digest,
        parallelism=file.parallelism,
        trial_timeout=file.trial_timeout,
        placement=file.placement,
        max_node_hours=file.max_node_hours,
        outcome_constraints=file.outcome_constraints,
        resampling=file.resampling,
        estimator=file.estimator,
        pruning=file.pruning,
        stopping=file.stopping,
        final_check=file.final_check or False,
        start_from=file.start_from,
        load_if_exists=load_if_exists,
    )


def _made_up(file: StudyFile) -> str:
    time = datetime.now().astimezone().strftime("%Y%m%d-%H%M%S")
    parts = [part for part in (file.component, file.application) if part] or ["study"]
    # A study's name has at most 63 characters.
    return "-".join(parts)[: 63 - len(time) - 1] + "-" + time
