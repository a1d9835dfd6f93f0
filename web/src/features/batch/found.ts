/** Where a batch script has a value that could be tuned. */
export interface Place {
  /** The name of the parameter. */
  name: string;
  /** How the value reaches the script: the environment, an option of sbatch, or an argument. */
  kind: "env" | "option" | "argument";
  /** The variable, the option without its dashes, or the number of the argument. */
  target: string;
  /** The value that the script has now; "" if the script does not say. */
  value: string;
  /** The line of the script, from 1. */
  line: number;
  /** Whether the script sets the variable itself, so that a value from outside has no effect. */
  fixed: boolean;
}

/** The options of sbatch that change how fast a job runs. */
const OPTION = /^(nodes|ntasks|ntasks-per-(node|core|socket)|cpus-per-task|threads-per-core|sockets-per-node|cores-per-socket|gpus|gpus-per-(node|task)|cpu-freq|distribution|hint)$/;
const SHORT: Record<string, "nodes" | "ntasks" | "cpus-per-task" | "gpus" | "distribution"> = { N: "nodes", n: "ntasks", c: "cpus-per-task", G: "gpus", m: "distribution" };

/** Variables that a job has from Slurm, its shell or its user. */
const GIVEN = /^(SLURM_.*|SBATCH_.*|BASH.*|HOME|PATH|USER|LOGNAME|PWD|OLDPWD|SHELL|TMPDIR|HOSTNAME|LANG|LC_.*|UID|EUID|RANDOM|SECONDS|LINENO|IFS|PS[0-9]|REPLY|OPTARG|OPTIND|PIPESTATUS|.*LIBRARY_PATH|.*_HOME|.*_ROOT|.*_DIR)$/;
const ASSIGNED = /^(\s*(?:export\s+)?([A-Za-z_]\w*)=)(["']?)([\w.+-]+)\3\s*(?:#.*)?$/;
const DEFAULTED = /\$\{([A-Za-z_]\w*|[1-9]):?[-=]["']?([\w.+-]+)["']?\}/g;
const WRITTEN = /(?:^|[\s;(])(?:export\s+|local\s+|declare\s+(?:-\w+\s+)*)?([A-Za-z_]\w*)\+?=|\b(?:for|read(?:\s+-\w+)*)\s+([A-Za-z_]\w*)/g;
const USED = /\$(?:\{([A-Za-z_]\w*)[^}]*\}|([A-Za-z_]\w*)|\{?([1-9])\}?)/g;

/** Return the places of a batch script where a value could be tuned, in the order of their lines. */
export function placesOf(script: string): Place[] {
  const found = new Map<string, Place>();
  const add = (place: Omit<Place, "name">) => {
    const key = `${place.kind} ${place.target}`;
    if (found.has(key)) return;
    const name = nameOf(place);
    const taken = [...found.values()].some((other) => other.name === name);
    found.set(key, { ...place, name: taken ? `${name}_${place.kind}` : name });
  };
  const lines = script.split(/\r?\n/);
  const code = lines.map(codeOf);
  const writes = written(code);
  lines.forEach((line, index) => {
    for (const [option, value] of directives(line)) add({ kind: "option", target: option, value, line: index + 1, fixed: false });
  });
  code.forEach((line, index) => {
    const at = index + 1;
    const assigned = ASSIGNED.exec(line);
    if (assigned !== null && writes.get(assigned[2] ?? "") === 1 && !GIVEN.test(assigned[2] ?? "")) {
      add({ kind: "env", target: assigned[2] ?? "", value: assigned[4] ?? "", line: at, fixed: true });
    }
    for (const [, target = "", value = ""] of line.matchAll(DEFAULTED)) {
      if (!GIVEN.test(target)) add({ kind: /^\d$/.test(target) ? "argument" : "env", target, value, line: at, fixed: false });
    }
  });
  code.forEach((line, index) => {
    for (const [, braced, plain, argument] of line.matchAll(USED)) {
      const variable = braced ?? plain;
      if (argument !== undefined) add({ kind: "argument", target: argument, value: "", line: index + 1, fixed: false });
      else if (variable !== undefined && !GIVEN.test(variable) && !writes.has(variable)) {
        add({ kind: "env", target: variable, value: "", line: index + 1, fixed: false });
      }
    }
  });
  return [...found.values()].sort((a, b) => a.line - b.line);
}

/** Return the script with the chosen variables taken from the environment, with the present value as the default. */
export function opened(script: string, chosen: readonly Place[]): string {
  const fixed = new Set(chosen.filter((place) => place.fixed).map(({ target }) => target));
  return script
    .split("\n")
    .map((line) => {
      const assigned = ASSIGNED.exec(line.replace(/\r$/, ""));
      if (assigned === null || !fixed.has(assigned[2] ?? "")) return line;
      const [, start = "", variable = "", , value = ""] = assigned;
      return `${start}\${${variable}:-${value}}`;
    })
    .join("\n");
}

/** Return a line without comments and without texts in which the shell replaces nothing. */
function codeOf(line: string): string {
  if (/^\s*#/.test(line)) return "";
  // A text in single quotes that is a whole value stays, since it is a literal.
  return line.replace(/(^|[^=])'[^']*'/g, "$1''").replace(/(\s)#.*$/, "$1");
}

/** Return how often the lines set each variable. */
function written(code: readonly string[]): Map<string, number> {
  const writes = new Map<string, number>();
  for (const line of code) {
    for (const [, assigned, looped] of line.matchAll(WRITTEN)) {
      const name = assigned ?? looped ?? "";
      // X=${X:-1} takes the value from outside.
      if (new RegExp(String.raw`\b${name}=["']?\$\{${name}:?-`).test(line)) continue;
      writes.set(name, (writes.get(name) ?? 0) + 1);
    }
  }
  return writes;
}

/** Return the options of a line `#SBATCH` that could be tuned, with their values. */
function directives(line: string): [string, string][] {
  const rest = /^#SBATCH\s+(.*)$/.exec(line)?.[1]?.replace(/\s#.*$/, "");
  if (rest === undefined) return [];
  return [...rest.matchAll(/(?:^|\s)(?:--([a-z-]+)(?:=|\s+)|-([A-Za-z])\s*)([\w.+:,-]+)/g)].flatMap(([, long, short, value = ""]) => {
    const option = long ?? SHORT[short ?? ""] ?? "";
    return OPTION.test(option) ? [[option, value] as [string, string]] : [];
  });
}

function nameOf({ kind, target }: Omit<Place, "name">): string {
  if (kind === "argument") return kind + target;
  return target.toLowerCase().replaceAll("-", "_");
}
