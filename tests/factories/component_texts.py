"""Component files, good and bad: what the agent's loader and the service have to agree on."""

FULL = """\
name: everything
description: A component that uses every part of the format.
parameters:
  SIZE: {unit: KiB, type: int, min: 1, max: 1024, factor: 2, log: true, default: 8, env: SIZE_BYTES}
  ratio: {type: float, min: 1e-3, max: 1, log: true, default: 0.5, flag: ["--ratio", "{value}"]}
  fast:
    type: boolean
    default: false
    flag: {on: -ffast, off: -fno-fast}
    group: compile
    injected: {values: [true], text: heat}
  mode: {type: categorical, values: [on, off, 3], default: off, flag: "--{name}={value}", omit_default: true}
  depth:
    {type: ordinal, values: [1, 2, 4], default: 2, scheduler: "-d{value}", condition: {parent: fast, values: [true]}}
  line: {type: int, min: 0, max: 3, step: 1, default: 0, directive: "line={value}"}
build:
  sources: ["*.c"]
  commands: [[cc, "{flags:compile}", "{component}/a.c", -o, "{build}/a"]]
  env: {LC_ALL: C}
  depends: [sh]
env: {WHERE: "{work}"}
preload: [libm.so.6]
header: [[sync]]
templates: [{source: conf.in, target: etc/conf}]
scheduler: {options: [--plugin, fast], directives: ["#BB one"]}
applications:
  main: {command: ["{build}/a", "{SIZE}", "{{x}}"], repeats: 3, aggregate: min, timeout: 5, files: [a.c],
         injected: load}
metrics:
  seconds: wall_time
  rate: {type: regex, pattern: 'rate (\\d+)', take: max}
  deep: {type: json, path: a.0.b, from: out.json}
  own: {type: python, function: "parse.py:own"}
exit_codes: {failed: [75]}
injected: a slow disk
"""
FILES = {"a__c": "int main(void) { return 0; }", "conf__in": "size ${SIZE}\n", "parse__py": "def own(run): return 1"}


def faulty(parameters: str = "", rest: str = "") -> str:
    head = "name: c\napplications: {main: {command: [run]}}\n"
    return head + (f"parameters:\n  p: {parameters}\n" if parameters else "") + rest


# file's text -> line, field and words of the message
BAD = [
    (
        faulty(rest="injected: |\n  two\n  lines\n"),
        3,
        "injected",
        "a noun phrase of at most 200 characters on one line",
    ),
    (
        faulty("{type: int, min: 0, max: 3, default: 0, env: P, injected: {values: [4], text: x}}"),
        4,
        "parameters.p.injected.values",
        "4 is not an integer from 0 to 3",
    ),
    (
        faulty("{type: int, min: 0, max: 3, default: 0, env: P, injected: {values: []}}"),
        4,
        "parameters.p.injected.text",
        "is missing",
    ),
    ("[1, 2]", 1, "file", "must be a mapping"),
    ("name: a\n  b: [", 2, "syntax", "not valid YAML"),
    ("name: c\n", 1, "applications", "is missing"),
    ("name: a b\napplications: {m: {command: [x]}}", 1, "name", "'a b' is not a name"),
    ("name: c\nname: d\napplications: {m: {command: [x]}}", 2, "name", "appears twice; first on line 1"),
    ("name: c\nparamters: {}\napplications: {m: {command: [x]}}", 2, "paramters", "did you mean 'parameters'?"),
    ("name: c\napplications: {}", 2, "applications", "at least one"),
    ("name: c\napplications: {m: {command: run it}}", 2, "applications.m.command", "must be a list"),
    ("name: c\napplications: {m: {command: []}}", 2, "applications.m.command", "the program first"),
    ("name: c\napplications: {m: {command: [x], tiemout: 3}}", 2, "applications.m.tiemout", "did you mean 'timeout'?"),
    ("name: c\napplications: {m: {command: [x], timeout: 0}}", 2, "applications.m.timeout", "not above 0"),
    ("name: c\napplications: {m: {command: [x], repeats: 0}}", 2, "applications.m.repeats", "below the minimum 1"),
    (
        "name: c\napplications: {m: {command: ['{y}']}}",
        2,
        "applications.m.command",
        "{y} is not one of {build}, {component}",
    ),
    ("name: c\napplications: {m: {command: ['a{']}}", 2, "applications.m.command", "write a literal brace twice"),
    ("name: c\napplications: {m: {command: ['-{flags}']}}", 2, "applications.m.command", "separate item"),
    ("name: c\napplications: {m: {command: ['{build}/x']}}", 1, "build", "{build} is used"),
    (faulty("{type: int, min: 5, max: 2, default: 3, env: P}"), 4, "parameters.p.min", "5 is not below max, 2"),
    (faulty("{type: int, min: 1, max: 2, env: P}"), 4, "parameters.p.default", "is missing"),
    (faulty("{type: int, min: 1, max: 2, default: 9, env: P}"), 4, "parameters.p.default", "an integer from 1 to 2"),
    (faulty("{type: int, min: 1.5, max: 2, default: 2, env: P}"), 4, "parameters.p.min", "1.5 is not an integer"),
    (faulty("{type: float, min: 0, max: 2, log: true, default: 1, env: P}"), 4, "parameters.p.min", "not above 0"),
    (
        faulty("{type: float, min: 1, max: 2, step: 1, factor: 2, default: 1, env: P}"),
        4,
        "parameters.p.factor",
        "give only one",
    ),
    (faulty("{type: float, min: a, max: 2, default: 1, env: P}"), 4, "parameters.p.min", "'a' is not a number"),
    (faulty("{type: integer, min: 1, max: 2, default: 1, env: P}"), 4, "parameters.p.type", "Did you mean 'int'?"),
    (faulty("{type: ordinal, values: [1], default: 1, env: P}"), 4, "parameters.p.values", "at least two"),
    (faulty("{type: ordinal, values: [1, 1], default: 1, env: P}"), 4, "parameters.p.values", "twice"),
    (faulty("{type: categorical, values: [a, b], default: c, env: P}"), 4, "parameters.p.default", "one of 'a', 'b'"),
    (faulty("{type: categorical, values: [a, b], min: 1, default: a, env: P}"), 4, "parameters.p.min", "unknown key"),
    (faulty("{type: boolean, default: yes, env: P}"), 4, "parameters.p.default", "'yes' is not true or false"),
    (faulty("{type: boolean, default: true, flag: -x}"), 4, "parameters.p.flag", "{on: ..., off: ...}"),
    (faulty("{type: int, min: 1, max: 2, default: 1, flag: -x}"), 4, "parameters.p.flag", "must contain {value}"),
    (
        faulty("{type: int, min: 1, max: 2, default: 1, flag: '{valeu}{value}'}"),
        4,
        "parameters.p.flag",
        "{valeu} is not one of",
    ),
    (faulty("{type: int, min: 1, max: 2, default: 1}"), 4, "parameters.p", "its value is not used"),
    (faulty("{type: int, min: 1, max: 2, default: 1, env: 1P}"), 4, "parameters.p.env", "variable's name"),
    (
        faulty("{type: int, min: 1, max: 2, default: 1, flag: '{value}', group: g}"),
        4,
        "parameters.p.group",
        "no command contains",
    ),
    (
        faulty("{type: int, min: 1, max: 2, default: 1, env: P, condition: {parent: q, values: [1]}}"),
        4,
        "parameters.p.condition",
        "'q' is not a parameter",
    ),
    (
        faulty("{type: int, min: 1, max: 2, default: 1, env: P, condition: {parent: p, values: [1]}}"),
        4,
        "parameters.p.condition",
        "is circular",
    ),
    (faulty(rest="metrics: {m: {type: regex, pattern: 'x'}}"), 3, "metrics.m.pattern", "must have a group"),
    (faulty(rest="metrics: {m: {type: regex, pattern: '('}}"), 3, "metrics.m.pattern", "not a regular expression"),
    (faulty(rest="metrics: {m: {type: regexp, pattern: 'x'}}"), 3, "metrics.m.type", "Did you mean 'regex'?"),
    (faulty(rest="metrics: {m: {type: json}}"), 3, "metrics.m.path", "is missing"),
    (
        faulty(rest="metrics: {m: {type: json, path: a, from: ../x}}"),
        3,
        "metrics.m.from",
        "inside the trial's work folder",
    ),
    (faulty(rest="metrics: {m: {type: python, function: 'parse'}}"), 3, "metrics.m.function", "FILE.py:FUNCTION"),
    (faulty(rest="scheduler: {directives: ['rm -r x']}"), 3, "scheduler.directives", "must start with '#'"),
    (faulty(rest="scheduler: {directives: ['#SBATCH -n 2']}"), 3, "scheduler.directives", "under `options`"),
    (faulty(rest="metrics: {m: {type: prometheus, query: up}}"), 3, "metrics.m.query", "must contain $run"),
    (faulty(rest=f"metrics: {{m: {{type: prometheus, query: '{'x' * 2001}'}}}}"), 3, "metrics.m.query", "at most 2000"),
    (
        faulty(rest="metrics: {m: {type: prometheus, query: 'a[$run]', url: 'file:///etc/passwd'}}"),
        3,
        "metrics.m.url",
        "http://HOST:PORT",
    ),
    (
        faulty(rest="metrics: {m: {type: prometheus, query: 'a[$run]', delay: 301}}"),
        3,
        "metrics.m.delay",
        "300 seconds",
    ),
    (
        faulty(rest="metrics: {m: {type: prometheus, query: 'a[$run]', timeout: 61}}"),
        3,
        "metrics.m.timeout",
        "above 60",
    ),
    (faulty(rest="metrics: {m: {type: prometheus, query: 'a[$run]', from: stderr}}"), 3, "metrics.m.from", "unknown"),
    (faulty(rest="metrics: {m: time}"), 3, "metrics.m", "wall_time or a mapping"),
    (faulty(rest="metrics: {m: {type: wall_time, process: p}}"), 3, "metrics.m.process", "unknown"),
    (faulty(rest="metrics: {m: {type: cpu_time, process: /bin/p}}"), 3, "metrics.m.process", "ps -o comm"),
    (faulty(rest="needs: {packages: {nginx: nginx}}"), 3, "needs.packages", "Allowed: programs, modules, files"),
    (faulty(rest="metrics: {m: {hyperfine: avg}}"), 3, "metrics.m.hyperfine", "'avg' is not one of mean, median, min"),
    (faulty(rest="metrics: {m: {hyperfin: mean}}"), 3, "metrics.m", "the name of a tool (pytest-benchmark, hyperfine"),
    (faulty(rest="metrics: {m: {hyperfine: mean, path: a}}"), 3, "metrics.m.path", "unknown"),
    (faulty(rest="metrics: {m: {wrk: requests, of: a}}"), 3, "metrics.m.of", "is not allowed with wrk"),
    (faulty(rest="metrics: {m: {k6: requests, of: vus}}"), 3, "metrics.m.of", "not a statistic of a duration"),
    (faulty(rest="metrics: {m: {k6: p95, of: mine}}"), 3, "metrics.m.of", "'mine' is not one of http_req_duration"),
    (faulty(rest="metrics: {m: {fio: iops, from: /tmp/a}}"), 3, "metrics.m.from", "inside the trial's work folder"),
    (faulty(rest="build: {commands: [[cc, '{work}']]}"), 3, "build.commands", "use {build}"),
    (
        faulty(rest="templates: [{source: parse.py, target: /etc/passwd}]"),
        3,
        "templates[0].target",
        "inside the trial's work folder",
    ),
    (faulty(rest="exit_codes: {failed: [0]}"), 3, "exit_codes.failed", "from 1 to 255"),
    (faulty(rest="env: {'a b': c}"), 3, "env", "variable's name"),
    (faulty(rest="header: [sync]"), 3, "header[0]", "must be a list"),
    (faulty("{type: int, min: 1, max: 9, step: 2, default: 4, env: P}"), 4, "parameters.p.default", "not on the grid"),
    (
        faulty("{type: int, min: 2, max: 9, factor: 2, default: 6, env: P}"),
        4,
        "parameters.p.default",
        "not on the grid",
    ),
    (faulty("{type: int, min: 1, max: 9223372036854775808, default: 1, env: P}"), 4, "parameters.p.max", "64 bits"),
    (
        faulty(
            "{type: float, min: 0, max: 1, default: 0, env: P}\n  q: {type: boolean, default: true, env: Q, "
            "condition: {parent: p, values: [0]}}"
        ),
        5,
        "parameters.q.condition",
        "is continuous",
    ),
    (faulty(rest="metrics: {m: {type: regex, pattern: 'x{99999999999}(a)'}}"), 3, "metrics.m.pattern", "not a regular"),
    (
        faulty("{type: ordinal, values: [0, 9223372036854775808], default: 0, env: P}"),
        4,
        "parameters.p.values",
        "64 bits",
    ),
    (
        faulty("{type: ordinal, values: [0, 1.0e+300], default: 0, env: P}"),
        4,
        "parameters.p.values",
        "too large for a float",
    ),
    (
        faulty(f"{{type: categorical, values: [a, {'b' * 1001}], default: a, env: P}}"),
        4,
        "parameters.p.values",
        "longer than 1000",
    ),
    (
        faulty(f"{{type: int, min: {-(2**62)}, max: {2**62}, step: {2**63}, default: {-(2**62)}, env: P}}"),
        4,
        "parameters.p.step",
        "64 bits",
    ),
    (faulty(rest="env: &a {A: *a}"), 1, "file", "more than 100000 values"),
    (faulty(rest=f"header: {'[' * 60}"), 3, "syntax", "nested more than 50 levels deep"),
    # PyYAML 6.0.4 has a limit of its own, which speaks of the nesting depth.
    (faulty(rest=f"header: {'[' * 60_000}"), 3, "syntax", "nest"),
    (faulty(f"{{type: int, min: 0, max: {'9' * 5000}, default: 1, env: P}}"), 4, "parameters.p.max", "not an integer"),
    (faulty(rest="artifacts: [../x]"), 3, "artifacts", "inside the trial's work folder"),
    (faulty(rest="artifacts: [/etc/passwd]"), 3, "artifacts", "inside the trial's work folder"),
]

# What only a look at the component's folder, or at its programs, can tell.
IN_FOLDER = [
    ("name: c\napplications: {m: {command: [x], files: [gone]}}", 2, "applications.m.files", "'gone' is not a file"),
    ("name: c\napplications: {m: {script: gone.sh}}", 2, "applications.m.script", "'gone.sh' is not a file"),
    (faulty(rest="build: {sources: [x.c], commands: [[cc]]}"), 3, "build.sources", "matches no file"),
    (faulty(rest="parameters_from: {command: ['false']}"), 3, "parameters_from.command", "exit code 1"),
    (faulty(rest="parameters_from: {command: [echo, 'x']}"), 3, "parameters_from.command", "did not print JSON"),
    (faulty(rest="parameters_from: {command: [no-such-program]}"), 3, "parameters_from.command", "cannot be started"),
    (
        faulty(rest="parameters_from: {command: [sleep, '9'], timeout: 0.1}"),
        3,
        "parameters_from.command",
        "within 0.1 s",
    ),
]
