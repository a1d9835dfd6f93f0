"""Ray Tune support: Ray Tune runs the trials and a Trimtab study suggests them. `pip install "ray[tune]"`.

    from ray import tune
    from ray.tune.schedulers import ASHAScheduler
    from trimtab.integrations.ray.search import TrimtabScheduler, TrimtabSearch

    search = TrimtabSearch(study)
    tuner = tune.Tuner(
        trainable,
        tune_config=tune.TuneConfig(
            search_alg=search,
            scheduler=TrimtabScheduler(search, ASHAScheduler(metric="loss", mode="min", max_t=81)),
            num_samples=100,
            max_concurrent_trials=8,
        ),
    )
    tuner.fit()
    print(study.best_trial.params)

The study has the search space, the objectives and the history. After a crash of the driver, `tune.Tuner.restore`
continues with the open trials: Ray saves its own state about every ten seconds, and the service knows the rest. If the
driver ends in another way, for example with an error in Ray, the search first ends the trials that are still open.
"""

from trimtab.integrations.ray import TrimtabScheduler, TrimtabSearch

__all__ = ["TrimtabScheduler", "TrimtabSearch"]
