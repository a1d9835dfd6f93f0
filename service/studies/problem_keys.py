"""The keys of a study's problem: space, objectives, outcome constraints and context. `core` reads and checks them."""

from __future__ import annotations

from service.studies.spec_keys import Key, Kind, Record

_TEXT, _TEXTS, _NUMBER, _BOOLEAN = Kind("text"), Kind("texts"), Kind("number"), Kind("boolean")
_VALUE, _VALUES = Kind("value"), Kind("values")

CONDITION = Record(
    "Condition",
    "A condition: the parameter is active while its parent is active and has one of the values.",
    (Key("parent", _TEXT, required=True), Key("values", _VALUES, required=True)),
)

PARAMETER = Record(
    "Parameter",
    "A parameter: `min`, `max` for float and int; `values` for ordinal and categorical.",
    (
        Key("name", _TEXT, required=True),
        Key("type", Kind("choice", choices=("float", "int", "ordinal", "categorical", "bool")), required=True),
        Key("min", _NUMBER),
        Key("max", _NUMBER),
        Key("log", _BOOLEAN),
        Key("step", _NUMBER, "Grid: values from min in steps of this size."),
        Key("factor", _NUMBER, "Grid: values from min, each multiplied by this factor."),
        Key("values", _VALUES),
        Key("default", _VALUE),
        Key("condition", Kind("record", record=CONDITION)),
        Key("unit", _TEXT, "Unit of the values, for people: `MiB`."),
        Key("optional", _BOOLEAN, "Whether trials of a program that chooses its parameters while it runs may lack it."),
    ),
)

SPACE = Record(
    "Space",
    "Parameters, and constraints on them such as `n * 4 <= block`.",
    (
        Key("parameters", Kind("records", record=PARAMETER), required=True, short="space", file=None),
        Key("constraints", _TEXTS, 'Rules for parameters: ["n * 4 <= block"].', file_default=[]),
    ),
)

OBJECTIVE = Record(
    "Objective",
    "A metric and its goal.",
    (
        Key("metric", _TEXT, required=True),
        Key("goal", Kind("choice", choices=("minimize", "maximize")), required=True),
        Key("unit", _TEXT),
    ),
)

CONTEXT_VARIABLE = Record(
    "ContextVariable",
    "A parameter of the space that is observed with each trial and never chosen.",
    (
        Key("name", _TEXT, "Name of the parameter.", required=True),
        Key(
            "values",
            _VALUES,
            "Its values in the table. If left out: all values that are not cheaper, if these are few.",
        ),
        Key(
            "cheaper", _VALUES, "Values outside of the table at which trials cost less and may teach about the others."
        ),
    ),
)

PROBLEM_KEYS = (
    Key("space", Kind("record", record=SPACE), required=True, short=""),
    Key(
        "objectives",
        Kind("objectives", record=OBJECTIVE),
        "Goals.",
        required=True,
        file_form="[{minimize: seconds, unit: s}] or [{maximize: rate}]",
    ),
    Key("noisy", _BOOLEAN, "Whether two measurements of one configuration may differ.", file_default=True),
    Key("outcome_constraints", _TEXTS, 'Limits on metrics: ["memory_mb <= 4096"].', file_default=[]),
    Key(
        "context",
        Kind("records", record=CONTEXT_VARIABLE),
        "Parameters that are observed and never chosen. The recommendation is then a table.",
        file=None,
    ),
)
