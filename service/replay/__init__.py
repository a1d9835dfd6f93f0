"""The replay bench: a comparison of algorithms and policies on tables of measurements and simulators, without a server.

`table` and `simulators` create subjects, `run` replays one method on a subject, `bench` runs many replays in parallel,
`metrics` evaluates the runs and `report` shows them. The package imports core, algorithms, policies and tuner.
"""
