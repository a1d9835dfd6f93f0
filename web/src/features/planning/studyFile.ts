import { t } from "@lingui/core/macro";
import { isCollection, isMap, parseDocument, stringify, type Document } from "yaml";
import type { Parameter, StudySpec } from "@/lib/api/client";

/** A study file as `trimtab tune FILE` reads it, parsed but not checked: the service checks what it becomes. */
export type StudyFile = Record<string, unknown>;
export type Path = readonly (string | number)[];

/** What keeps a file from becoming a specification, and where. */
export class FileFault extends Error {
  readonly field: string;

  constructor(field: string, message: string) {
    super(`${field}: ${message}`);
    this.field = field;
  }
}

/* eslint-disable lingui/no-unlocalized-strings -- words of the file */
const KEYS = [
  "name",
  "component",
  "application",
  "digest",
  "parameters",
  "only",
  "constraints",
  "objectives",
  "algorithm",
  "seed",
  "noisy",
  "budget",
  "parallelism",
  "trial_timeout",
  "outcome_constraints",
  "resampling",
  "estimator",
  "pruning",
  "stopping",
  "final_check",
  "placement",
  "start_from",
] as const;
/* eslint-enable lingui/no-unlocalized-strings */

/** The content of a file. Throws FileFault with the line that is no YAML. */
export function read(text: string): StudyFile {
  const document = parseDocument(text);
  const [error] = document.errors;
  if (error !== undefined) throw new FileFault(t`line ${error.linePos?.[0].line ?? "?"}`, error.message.split("\n")[0] ?? "");
  const content: unknown = document.toJS();
  return content === null ? {} : mapping(t`the file`, content);
}

/** The file with one value set, or taken away where it is undefined; its other lines and comments stay as they are. */
export function edit(text: string, path: Path, value: unknown): string {
  const document: Document = parseDocument(text);
  if (!isMap(document.contents)) document.contents = document.createNode({});
  if (value === undefined) {
    if (document.hasIn(path)) document.deleteIn(path);
  } else {
    // What stands on the way and has nothing in it that the path leads into gives way.
    for (let depth = 1; depth < path.length; depth++) {
      const inner = document.getIn(path.slice(0, depth));
      if (typeof inner !== "object" || inner === null) document.setIn(path.slice(0, depth), document.createNode({}));
    }
    document.setIn(path, document.createNode(value, { flow: isShort(value) }));
  }
  // An emptied mapping or list says nothing.
  for (let depth = path.length - 1; value === undefined && depth > 0; depth--) {
    const inner: unknown = document.getIn(path.slice(0, depth));
    if (isCollection(inner) && inner.items.length === 0) document.deleteIn(path.slice(0, depth));
  }
  return document.toString({ lineWidth: 110, flowCollectionPadding: false });
}

/** A file written anew, a line for each value and for each parameter. */
export function write(file: StudyFile): string {
  return Object.entries(file).reduce((text, [key, value]) => {
    if (key !== "parameters" || !isObject(value)) return edit(text, [key], value);
    return Object.entries(value).reduce((inner, [name, parameter]) => edit(inner, [key, name], parameter), text);
  }, "");
}

/** Values that people write on one line. */
function isShort(value: unknown): boolean {
  return typeof value === "object" && value !== null && stringify(value, { collectionStyle: "flow", lineWidth: 0 }).length < 100;
}

/** The specification that a file stands for. `space`: of its component, whose parameters it changes. Throws FileFault. */
export function toSpec(file: StudyFile, space: readonly Parameter[] = []): StudySpec {
  for (const key of Object.keys(file)) {
    if (!(KEYS as readonly string[]).includes(key)) throw new FileFault(key, t`not known here; known are ${KEYS.join(", ")}`);
  }
  const { component } = file;
  const budget = mapping("budget", file.budget ?? {});
  return compact({
    space: compact({ parameters: parametersOf(file, space), constraints: file.constraints }),
    objectives: list("objectives", file.objectives ?? []).map((item, index) => objective(`objectives[${index}]`, item)),
    algorithm: file.algorithm === undefined ? undefined : policy("algorithm", file.algorithm),
    seed: file.seed,
    noisy: file.noisy,
    outcome_constraints: file.outcome_constraints,
    resampling: optional(file.resampling, (value) => policy("resampling", value)),
    estimator: optional(file.estimator, (value) => policy("estimator", value)),
    pruning: optional(file.pruning, (value) => list("pruning", value).map((item, index) => policy(`pruning[${index}]`, item))),
    stopping: file.stopping ?? undefined,
    final_check: file.final_check === true ? {} : file.final_check === false ? undefined : (file.final_check ?? undefined),
    budget: compact({
      ...without(budget, "max_time"),
      max_seconds: optional(budget.max_time, (value) => seconds("budget.max_time", value)),
    }),
    execution:
      component === undefined
        ? undefined
        : compact({
            component,
            application: file.application,
            digest: file.digest,
            parallelism: file.parallelism,
            trial_timeout_seconds: optional(file.trial_timeout, (value) => seconds("trial_timeout", value)),
            placement: file.placement,
          }),
    start_from: file.start_from,
  }) as unknown as StudySpec;
}

/** The parameters that are tuned: the component's with the file's changes, or the file's own. */
export function parametersOf(file: StudyFile, space: readonly Parameter[]): Parameter[] {
  const described = new Map<string, Record<string, unknown>>(space.map((parameter) => [parameter.name, { ...parameter }]));
  for (const [name, given] of Object.entries(mapping("parameters", file.parameters ?? {}))) {
    const changes = mapping(`parameters.${name}`, given);
    if (file.component !== undefined && space.length > 0 && !described.has(name)) {
      throw new FileFault(`parameters.${name}`, t`the component has no such parameter; it has ${[...described.keys()].join(", ")}`);
    }
    const own = described.get(name) ?? {};
    const type = changes.type === "boolean" ? "bool" : changes.type;
    // Of another type, such as a list of values in place of a range, it is described anew.
    const kept = type === undefined || type === own.type ? own : {};
    described.set(name, compact({ ...kept, ...changes, ...(type === undefined ? {} : { type }), name }));
  }
  const only = file.only === undefined || file.only === null ? undefined : list("only", file.only);
  for (const name of only ?? []) {
    if (typeof name !== "string" || !described.has(name)) throw new FileFault("only", t`${String(name)} is none of ${[...described.keys()].join(", ")}`);
  }
  return [...described.values()].filter(({ name }) => only === undefined || only.includes(name)) as unknown as Parameter[];
}

/** The file of a study: what `toSpec` makes the same specification of. */
export function fromSpec(name: string, spec: StudySpec): StudyFile {
  const { execution, budget } = spec;
  const parameters = spec.space.parameters.map(({ name: own, type, ...rest }) => [own, { type: type === "bool" ? "boolean" : type, ...rest }]);
  return compact({
    name,
    component: execution?.component,
    application: execution?.application === "" ? undefined : execution?.application,
    digest: execution?.digest === "" ? undefined : execution?.digest,
    parameters: Object.fromEntries(parameters),
    // With a component, those that are not named would come with it.
    only: execution ? spec.space.parameters.map((parameter) => parameter.name) : undefined,
    constraints: filled(spec.space.constraints),
    objectives: spec.objectives.map(({ metric, goal, unit }) => compact({ [goal]: metric, unit: unit === "" ? undefined : unit })),
    algorithm: spec.algorithm === undefined ? undefined : shortPolicy(spec.algorithm),
    seed: spec.seed === 0 ? undefined : spec.seed,
    noisy: spec.noisy === false ? false : undefined,
    budget: filledMapping(
      compact({ max_trials: budget?.max_trials, max_time: budget?.max_seconds, max_node_hours: budget?.max_node_hours }),
    ),
    outcome_constraints: filled(spec.outcome_constraints),
    resampling: optional(spec.resampling, shortPolicy),
    estimator: optional(spec.estimator, shortPolicy),
    pruning: filled(spec.pruning?.map(shortPolicy)),
    stopping: spec.stopping ?? undefined,
    final_check: spec.final_check ?? undefined,
    parallelism: execution?.parallelism,
    trial_timeout: execution?.trial_timeout_seconds ?? undefined,
    placement: execution?.placement,
    start_from: filled(spec.start_from),
  });
}

const UNITS: Record<string, number> = { "": 1, s: 1, m: 60, min: 60, h: 3600, d: 86400 };

/** A number of seconds, or 90s, 2m, 1.5h. */
function lengthOf(value: unknown): { amount: number; symbol: string; unit: number } | undefined {
  if (typeof value === "number") return { amount: value, symbol: "", unit: 1 };
  const [, amount, symbol = ""] = (typeof value === "string" ? /^\s*(\d+(?:\.\d+)?)\s*([a-z]*)\s*$/.exec(value) : null) ?? [];
  const unit = UNITS[symbol];
  return amount === undefined || unit === undefined ? undefined : { amount: Number(amount), symbol, unit };
}

/** The unit that a length of time is written in: its symbol, and how many seconds it has. */
export function timeUnit(value: unknown): { symbol: string; seconds: number } {
  const { symbol, unit } = lengthOf(value) ?? { symbol: "", unit: 1 };
  return { symbol, seconds: unit };
}

/** A length of time: a number of seconds, or 90s, 2m, 1.5h. Throws FileFault. */
export function seconds(field: string, value: unknown): number {
  const length = lengthOf(value);
  if (length === undefined) throw new FileFault(field, t`${JSON.stringify(value)} is no time such as 90s, 2m or 1.5h`);
  return length.amount * length.unit;
}

function objective(field: string, item: unknown): Record<string, unknown> {
  const { minimize, maximize, unit } = mapping(field, item);
  if ((minimize === undefined) === (maximize === undefined)) throw new FileFault(field, t`either ${"{minimize: METRIC}"} or ${"{maximize: METRIC}"}`);
  return compact({ metric: minimize ?? maximize, goal: minimize === undefined ? "maximize" : "minimize", unit });
}

function policy(field: string, value: unknown): Record<string, unknown> {
  return typeof value === "string" ? { name: value } : mapping(field, value);
}

function shortPolicy({ name, options }: { name: string; options?: Record<string, unknown> }): unknown {
  const given = Object.entries(options ?? {}).filter(([, value]) => value !== null);
  return given.length === 0 ? name : { name, options: Object.fromEntries(given) };
}

function mapping(field: string, value: unknown): Record<string, unknown> {
  if (!isObject(value)) throw new FileFault(field, t`names with values are expected, as in ${"{a: 1}"}`);
  return value;
}

function list(field: string, value: unknown): unknown[] {
  if (!Array.isArray(value)) throw new FileFault(field, t`a list is expected, as in [a, b]`);
  return value;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function optional<T, R>(value: T | null | undefined, make: (value: T) => R): R | undefined {
  return value === null || value === undefined ? undefined : make(value);
}

function filled<T>(items: readonly T[] | undefined): readonly T[] | undefined {
  return items === undefined || items.length === 0 ? undefined : items;
}

function filledMapping(items: Record<string, unknown>): Record<string, unknown> | undefined {
  return Object.keys(items).length === 0 ? undefined : items;
}

function without(items: Record<string, unknown>, key: string): Record<string, unknown> {
  return Object.fromEntries(Object.entries(items).filter(([name]) => name !== key));
}

/** Without what is undefined or null: neither says anything. */
function compact(items: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(items).filter(([, value]) => value !== undefined && value !== null));
}
