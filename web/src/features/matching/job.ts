import { t } from "@lingui/core/macro";
import { parse } from "yaml";
import type { JobToMatch } from "@/lib/api/client";
import { quoted } from "@/lib/words";

/** The fields of a job as the form has them. The command is the whole text above them. */
export interface JobFields {
  user: string;
  name: string;
  program: string;
  command_line: string;
  nodes: string;
  cluster: string;
  cluster_nodes: string;
  partition: string;
  submitted_at: string;
}

/** What was read from a pasted text, and the fault of the text. */
export interface Reading {
  kind: "nothing" | "command" | "script" | "document";
  job: Partial<JobFields>;
  fault?: string;
}

// eslint-disable-next-line lingui/no-unlocalized-strings -- names of fields
export const FIELDS_OF_JOBS = ["user", "name", "program", "command_line", "nodes", "cluster", "cluster_nodes", "partition", "submitted_at"] as const;
const KINDS = new Set(["sbatch", "srun", "salloc"]);
/** Options of Slurm that have no value of their own. */
const FLAGS = new Set(
  "bell contiguous exclusive get-user-env help hold immediate kill-command no-bell no-kill no-shell overcommit oversubscribe quiet reboot share spread-job usage use-min-nodes verbose version".split(" "),
);
const SHORT_FLAGS = new Set("hHOQvV");
const OPTIONS: Record<string, "name" | "nodes" | "partition" | "cluster"> = {
  "--job-name": "name",
  "-J": "name",
  "--nodes": "nodes",
  "-N": "nodes",
  "--partition": "partition",
  "-p": "partition",
  "--clusters": "cluster",
  "-M": "cluster",
};

/** Read a job from a command, a batch script, or a document in JSON or YAML. */
export function readJob(text: string): Reading {
  const trimmed = text.trim();
  if (trimmed === "") return { kind: "nothing", job: {} };
  if (trimmed.startsWith("#!") || /^#SBATCH\b/m.test(trimmed)) return { kind: "script", job: ofScript(trimmed) };
  if (trimmed.startsWith("{") || /^[a-z_]+:(\s|$)/.test(trimmed)) return ofDocument(trimmed);
  return { kind: "command", job: ofCommand(words(trimmed.replaceAll("\\\n", " ").split("\n")[0] ?? "")) };
}

/** Return what the options of a batch script say. Slurm reads them up to the first command; the name of the file is not among them. */
function ofScript(text: string): Partial<JobFields> {
  const lines = text.split("\n").map((line) => line.trim());
  const end = lines.findIndex((line) => line !== "" && !line.startsWith("#"));
  const head = end < 0 ? lines : lines.slice(0, end);
  const options = head.filter((line) => line.startsWith("#SBATCH")).flatMap((line) => words(line.slice("#SBATCH".length).replace(/\s#.*$/, "")));
  return optionsOf(options).job;
}

/** Return the job of a command as an agent reports it: without the options of Slurm, the program without its folder. */
function ofCommand(argv: string[]): Partial<JobFields> {
  const [first = "", ...rest] = argv;
  if (!KINDS.has(first)) {
    const program = baseOf(first);
    return { name: program, program, command_line: argv.map(quoted).join(" ") };
  }
  const { job, words: own } = optionsOf(rest);
  const program = baseOf(own[0] ?? first);
  return { name: program, program, command_line: [first, ...own].map(quoted).join(" "), ...job };
}

/** Read leading options of Slurm. Returns their values and the words after them. */
function optionsOf(argv: string[]): { job: Partial<JobFields>; words: string[] } {
  const job: Partial<JobFields> = {};
  let place = 0;
  for (; argv[place]?.startsWith("-"); place += 1) {
    const word = argv[place] ?? "";
    const [long = "", ...values] = word.split("=");
    const isLong = word.startsWith("--");
    const option = isLong ? long : word.slice(0, 2);
    const isFlag = isLong ? FLAGS.has(option.slice(2)) : SHORT_FLAGS.has(option.slice(1));
    let value = isLong ? values.join("=") : word.slice(2);
    if (value === "" && !isFlag && !word.includes("=")) {
      place += 1;
      value = argv[place] ?? "";
    }
    const field = OPTIONS[option];
    // A range of nodes counts by its least number, as for the agent.
    if (field !== undefined) job[field] = field === "nodes" ? value.replace(/-.*$/, "") : value;
  }
  return { job, words: argv.slice(place) };
}

/** Read a job, or the key `job` of a study file, in JSON or YAML. */
function ofDocument(text: string): Reading {
  let read: unknown;
  try {
    read = parse(text);
  } catch (error) {
    return { kind: "document", job: {}, fault: error instanceof Error ? (error.message.split("\n")[0] ?? "") : String(error) };
  }
  const inner = isObject(read) && isObject(read.job) ? read.job : read;
  if (!isObject(inner)) return { kind: "document", job: {}, fault: t`The text has no fields of a job.` };
  const { command, ...given } = inner;
  const named: Record<string, unknown> = command === undefined ? given : { command_line: command, ...given };
  const unknown = Object.keys(named).find((key) => !FIELDS_OF_JOBS.some((one) => one === key));
  if (unknown !== undefined) return { kind: "document", job: {}, fault: t`${unknown} is no field of a job. Allowed: ${FIELDS_OF_JOBS.join(", ")}.` };
  const job: Record<string, string> = {};
  for (const [key, value] of Object.entries(named)) {
    if (typeof value !== "string" && typeof value !== "number") return { kind: "document", job: {}, fault: t`${key}: a text or a number is expected.` };
    job[key] = String(value);
  }
  return { kind: "document", job };
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}

function baseOf(path: string): string {
  return path.split("/").at(-1) ?? "";
}

/** Split a line into words as a shell does, with quotes and backslashes, without expansions. */
export function words(line: string): string[] {
  const found = line.match(/(?:\\.|'[^']*'|"(?:\\.|[^"\\])*"|[^\s'"\\]|['"\\])+/g) ?? [];
  return found.map((word) =>
    word.replace(/\\(.)|'([^']*)'|"((?:\\.|[^"\\])*)"/g, (_, escaped?: string, single?: string, double?: string) => escaped ?? single ?? double?.replace(/\\(["\\$`])/g, "$1") ?? ""),
  );
}

// eslint-disable-next-line lingui/no-unlocalized-strings -- a command
const SUBMIT = "sbatch";

export interface JobFault {
  field: string;
  message: string;
}

/** Return the job as the service takes it, and the fields that it could not take. A script is submitted by the name of its file. */
export function submitted(fields: Partial<JobFields>): { job: JobToMatch; faults: JobFault[] } {
  const { user = "", name = "", program = "", cluster = "", partition = "", submitted_at: at = "" } = fields;
  const faults: JobFault[] = [];
  const count = (field: "nodes" | "cluster_nodes", empty: number): number => {
    const written = (fields[field] ?? "").trim();
    if (!/^\d*$/.test(written)) faults.push({ field, message: t`Enter a whole number, or leave the field empty.` });
    return written === "" ? empty : Number(written);
  };
  const time = at === "" ? null : new Date(at);
  if (time !== null && Number.isNaN(time.getTime())) faults.push({ field: "submitted_at", message: t`Enter a date and a time, or leave the field empty.` });
  const isFile = fields.command_line === undefined && program !== "";
  const job = {
    user,
    name: name === "" ? program : name,
    program,
    command_line: isFile ? [SUBMIT, program].map(quoted).join(" ") : (fields.command_line ?? ""),
    nodes: count("nodes", 1),
    cluster,
    cluster_nodes: count("cluster_nodes", 0),
    partition,
    submitted_at: null as string | null,
  };
  if (faults.length === 0 && time !== null) job.submitted_at = time.toISOString();
  return { job, faults };
}
