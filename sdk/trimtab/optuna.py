"""A sampler of Optuna that takes its suggestions from a Trimtab study. `pip install "optuna>=5"`.

    import optuna
    from trimtab.integrations.optuna.sampler import TrimtabSampler

    study = optuna.create_study(sampler=TrimtabSampler())      # the only line that changes
    study.optimize(objective, n_trials=100)

The sampler creates the Trimtab study after the first trial, whose parameters are the first search space. Parameters
that the objective suggests later are added to it. Trials that Optuna's storage had before are added, too, so a study
that began with another sampler continues with all its results. A script that is started again with the same storage
continues the same Trimtab study.
"""

from trimtab.integrations.optuna import TrimtabSampler

__all__ = ["TrimtabSampler"]
