"""The keys of a study's problem: space, objectives, outcome constraints and context. `core` reads and checks them."""

from __future__ import annotations

from service.studies.spec_keys import Kind, Record, declare

_TEXT, _TEXTS, _NUMBER, _BOOLEAN = Kind("text"), Kind("texts"), Kind("number"), Kind("boolean")
_VALUE, _VALUES = Kind("value"), Kind("values")

CONDITION = Record(
    "Condition",
    "A condition: the parameter is active while its parent is active and has one of the values.",
    (declare("parent", _TEXT, required=True), declare("values", _VALUES, required=True)),
)

PARAMETER = Record(
    "Parameter",
    "A parameter: `min`, `max` for float and int; `values` for ordinal and categorical.",
    (
        declare("name", _TEXT, required=True),
        declare("type", Kind("choice", choices=("float", "int", "ordinal", "categorical", "bool")), required=True),
        declare("min", _NUMBER),
        declare("max", _NUMBER),
        declare("log", _BOOLEAN),
        declare("step", _NUMBER, "Grid: values from min in steps of this size."),
        declare("factor", _NUMBER, "Grid: values from min, each multiplied by this factor."),
        declare("values", _VALUES),
        declare("default", _VALUE),
        declare("condition", Kind("record", record=CONDITION)),
        declare("unit", _TEXT, "Unit of the values, for people: `MiB`."),
    ),
)

SPACE = Record(
    "Space",
    "Parameters, and constraints on them such as `n * 4 <= block`.",
    (
        declare("parameters", Kind("records", record=PARAMETER), required=True, message="space", file=None),
        declare("constraints", _TEXTS, 'Rules for parameters: ["n * 4 <= block"].', file_default=[]),
    ),
)

OBJECTIVE = Record(
    "Objective",
    "A metric and its goal.",
    (
        declare("metric", _TEXT, required=True),
        declare("goal", Kind("choice", choices=("minimize", "maximize")), required=True),
        declare("unit", _TEXT),
    ),
)

CONTEXT_VARIABLE = Record(
    "ContextVariable",
    "A parameter of the space that is observed with each trial and never chosen.",
    (
        declare("name", _TEXT, "Name of the parameter.", required=True),
        declare(
            "values",
            _VALUES,
            "Its values in the table. If left out: all values that are not cheaper, if these are few.",
        ),
        declare(
            "cheaper", _VALUES, "Values outside of the table at which trials cost less and may teach about the others."
        ),
    ),
)

PROBLEM_KEYS = (
    declare("space", Kind("record", record=SPACE), required=True, message="", file=""),
    declare(
        "objectives",
        Kind("objectives", record=OBJECTIVE),
        "Goals.",
        required=True,
        file_form="[{minimize: seconds, unit: s}] or [{maximize: rate}]",
    ),
    declare("noisy", _BOOLEAN, "Whether two measurements of one configuration may differ.", file_default=True),
    declare("outcome_constraints", _TEXTS, 'Limits on metrics: ["memory_mb <= 4096"].', file_default=[]),
    declare(
        "context",
        Kind("records", record=CONTEXT_VARIABLE),
        "Parameters that are observed and never chosen. The recommendation is then a table.",
        file=None,
    ),
)
