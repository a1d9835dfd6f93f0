"""Study files, good and bad, that each interface has to read alike."""

PARAMETERS = "parameters: {x: {type: float, min: 0, max: 1, default: 0.5}}\n"
OBJECTIVES = "objectives: [{minimize: seconds}]\n"
BASE = PARAMETERS + OBJECTIVES

WHOLE = """
name: flags-1
parameters:
  x: {type: float, min: 1e-3, max: 10, log: true, default: 1}
  n: {type: int, min: 1, max: 16, factor: 2, default: 4}
  block: {type: ordinal, values: [4, 16, on], default: 16}
  alg: {type: categorical, values: [a, b], default: a}
  arenas: {type: int, min: 1, max: 8, default: 1, condition: {parent: alg, values: [a]}}
  huge: {type: boolean, default: false}
constraints: ["n <= 8"]
objectives: [{minimize: seconds, unit: s}]
algorithm: {name: gp, options: {initial: 5}}
seed: 3
noisy: false
budget: {max_trials: 30, max_time: 2m, max_node_hours: 5}
outcome_constraints: ["mb <= 4096"]
resampling: none
estimator: {name: quantile, options: {q: 0.9}}
pruning: [default, {name: limit, options: {seconds: 60}}]
stopping: {rule: best_improvement, threshold: 0.01, trials: 20}
final_check: {width: 0.1}
description: "*Fast*: yes"
job: {user: ada, name: ants, program: ant, command: ant --steps 9, nodes: 2}
"""

GOOD = {
    "least": BASE,
    "json": '{"parameters": {"x": {"type": "bool"}}, "objectives": [{"maximize": "rate"}]}',
    "whole": WHOLE,
    "several objectives": PARAMETERS + "objectives: [{minimize: seconds, unit: s}, {maximize: rate}]\n",
    "context": BASE.replace(
        OBJECTIVES,
        "context: {load: {type: categorical, values: [idle, high]}, hit: {type: float, "
        "min: 0, max: 1, at: [0.6, 0.9]}}\n" + OBJECTIVES,
    ),
    "cheaper values": BASE.replace(
        OBJECTIVES, "context: {size: {type: int, min: 1, max: 8, at: [8], cheaper: [1, 2]}}\n" + OBJECTIVES
    ),
    "final check": BASE + "final_check: true\n",
    "no final check": BASE + "final_check: false\n",
    "nothing given": BASE + "resampling:\nstopping: null\nbudget:\n",
    "anchors": "parameters:\n  x: &x {type: float, min: 0, max: 1}\n  y: *x\n" + OBJECTIVES,
    "execution without a component": BASE + "parallelism: 3\ntrial_timeout: 60\n",
    "description": BASE + "description: |\n\n  # Why\n\n      code # 1\n\n  - é, 5\n\n",
    "times": BASE + "budget: {max_time: 1.5h}\n",
}

# What is wrong, the text, the field, words of the message, the line.
BAD: dict[str, tuple[str, str, str, int | None]] = {
    "no objective": (PARAMETERS + "objectives: []\n", "objectives", "at least one", 2),
    "unknown key of a part": (
        PARAMETERS + "objectives: [{minimise: s}]\n",
        "objectives[0].minimise",
        "the key is not known. Did you mean 'minimize'? Use minimize, maximize, unit.",
        2,
    ),
    "two goals": (PARAMETERS + "objectives: [{minimize: s, maximize: t}]\n", "objectives[0]", "{minimize: METRIC}", 2),
    "unknown key": (
        BASE + "budgets: {}\n",
        "budgets",
        "the key is not known. Did you mean 'budget'? Use name, description, component",
        3,
    ),
    "a word as time": (BASE + "budget:\n  max_time: soon\n", "budget.max_time", "a time such as 90", 4),
    "no time": (BASE + "budget: {max_time: 0m}\n", "budget.max_time", "0m is not allowed. Use more than 0m", 3),
    "a part of a trial": (BASE + "budget: {max_trials: 1.5}\n", "budget.max_trials", "Use a whole number", 3),
    "too few trials": (BASE + "budget: {max_trials: 0}\n", "budget.max_trials", "budget.max_trials: 0", 3),
    "seed": (BASE + "seed: true\n", "seed", "True is not allowed. Use a whole number", 3),
    "no boolean": (BASE + "noisy: yes\n", "noisy", "'yes' is not allowed. Use true or false", 3),
    "a list of parameters": ("parameters: [x]\n" + OBJECTIVES, "parameters", "Use a mapping", 1),
    "no parameters": (OBJECTIVES, "parameters", "at least one", None),
    "no type": ("parameters: {x: {type: real}}\n" + OBJECTIVES, "parameters.x.type", "parameters.x.type: 'real'", 1),
    "no maximum": (
        "parameters:\n  y: {type: bool}\n  x: {type: float, min: 1}\n" + OBJECTIVES,
        "parameters.x.max",
        "parameters.x.max: a value is missing",
        3,
    ),
    "upside down": (
        "parameters: {x: {type: int, min: 3, max: 2}}\n" + OBJECTIVES,
        "parameters.x.min",
        "parameters.x.min: 3 is above max",
        1,
    ),
    "a key of a number": ("parameters: {x: {type: bool, min: 1}}\n" + OBJECTIVES, "parameters.x.min", "x.min", 1),
    "a text as list": (BASE + "constraints: x < 1\n", "constraints", "Use a list", 3),
    "a constraint": (BASE + "constraints:\n- x < 1\n- y < 1\n", "constraints[1]", "constraints[1]", 5),
    "no list of policies": (BASE + "pruning: default\n", "pruning", "Use a list", 3),
    "unknown policy": (BASE + "pruning: [magic]\n", "pruning[0].name", "'magic'", 3),
    "unknown option": (BASE + "algorithm: {name: gp, options: {magic: 1}}\n", "algorithm.options.magic", "magic", 3),
    "a policy without a name": (BASE + "resampling: {options: {n: 2}}\n", "resampling.name", "a value is missing", 3),
    "final check": (BASE + "final_check: {speed: 1}\n", "final_check.speed", "final_check.speed", 3),
    "stopping": (BASE + "stopping: soon\n", "stopping", "Use a mapping", 3),
    "only": (BASE + "only: [y]\n", "only[0]", "Use x", 3),
    "earlier study": (BASE + "start_from: [never-was]\n", "start_from[0]", "'never-was'", 3),
    "description": (
        BASE + f"description: {'x' * 10_001}\n",
        "description",
        "the text has 10,001 characters. Use a text of at most 10,000 characters.",
        3,
    ),
    "a job on no nodes": (BASE + "job: {nodes: 0}\n", "job.nodes", "0 is not allowed. Use an integer from 1", 3),
    "an unknown key of a job": (BASE + "job: {queue: long}\n", "job.queue", "the key is not known. Use user", 3),
    "a long command of a job": (
        BASE + f"job:\n  command: {'x' * 4097}\n",
        "job.command",
        "the text has 4,097 characters. Use at most 4,096.",
        4,
    ),
    "a description without quotes": (BASE + "description: 5\n", "description", "5 is not allowed. Use a text", 3),
    "a key twice": (BASE + "seed: 1\nseed: 2\n", "seed", "the key appears twice", 4),
    "a context that is a parameter": (BASE + "context: {x: {at: [0.5]}}\n", "context.x", "'x'", 3),
    "an unknown context variable": (BASE + "context: {load: {at: [0.5]}}\n", "context.load.type", "missing", 3),
    "a context without values": (
        BASE + "context: {load: {type: float, min: 0, max: 1}}\n",
        "context.load.at",
        "a value is missing",
        3,
    ),
    "a context value out of range": (
        BASE + "context:\n  load: {type: float, min: 0, max: 1, at: [2]}\n",
        "context.load.at[0]",
        "2",
        4,
    ),
    "a cheaper value in the table": (
        BASE + "context:\n  size: {type: int, min: 1, max: 8, at: [8], cheaper: [8]}\n",
        "context.size.at",
        "8 is cheaper, too",
        4,
    ),
    "a cheaper value out of range": (
        BASE + "context:\n  size: {type: int, min: 1, max: 8, at: [8], cheaper: [9]}\n",
        "context.size.cheaper[0]",
        "9",
        4,
    ),
    "no YAML": ("a: [1\n", "file", "The file cannot be read: line 2", 2),
    "a list": ("- a\n", "file", "must be a mapping", 1),
    "nothing": ("", "file", "The file is empty", None),
    "deep": ("a: " + "[" * 100 + "]" * 100, "file", "nested more than 50 levels deep", 1),
    "aliases": (
        "a: &a [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n"
        + "".join(
            f"{new}: &{new} [{', '.join([f'*{old}'] * 10)}]\n" for old, new in zip("abcdef", "bcdefg", strict=True)
        ),
        "file",
        "values",
        1,
    ),
    "long": ("# " + "x" * 300_000, "file", "262144 bytes", None),
}
