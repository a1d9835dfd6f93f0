"""The replay bench: algorithms and policies on tables of measurements and simulators, compared; no server needed.

`table` and `simulators` make subjects, `run` replays one method on one of them, `bench` many in parallel, `metrics`
judges the runs and `report` shows them. Imports core, algorithms, policies and tuner.
"""
