import { ApiError, type Parameter } from "@/lib/api/client";
import { formatNumber } from "@/lib/format";
import { writtenTimes } from "@/lib/times";
import { FileFault, timeUnit, type StudyFile } from "./studyFile";

/** What is wrong with a study, and where in its file. */
export interface Fault {
  field: string;
  message: string;
}

export type Step = "what" | "space" | "goals" | "method" | "budget" | "review";

/** Lengths of time, which people write in units of their own: where in the file, and what stands there. */
const TIMES: Record<string, (file: StudyFile) => unknown> = {
  "budget.max_time": ({ budget }) => (budget as { max_time?: unknown } | undefined)?.max_time,
  trial_timeout: (file) => file.trial_timeout,
};

/** The place in the file of what the service or the reading of the file has refused. */
export function faultOf(error: Error, parameters: readonly Parameter[], file: StudyFile): Fault {
  if (error instanceof FileFault) return { field: error.field, message: error.message };
  if (error instanceof ApiError && error.code === "study_exists") return { field: "name", message: error.message };
  const named = error instanceof ApiError && typeof error.data.field === "string" ? error.data.field : "";
  const field = inFile(named, parameters);
  const written = TIMES[field]?.(file);
  if (written !== undefined && error instanceof ApiError && typeof error.data.value === "number") {
    const unit = timeUnit(written);
    const allowed = writtenTimes(error, unit);
    if (allowed !== undefined) return { field, message: `${field}: ${formatNumber(error.data.value / unit.seconds, 6)}${unit.symbol} is not allowed. Use ${allowed}.` };
  }
  // The service's name for the field is in no file.
  const message = named !== "" && error.message.startsWith(`${named}:`) ? field + error.message.slice(named.length) : error.message;
  return { field, message };
}

/** The service names fields of the specification; people see those of the file. */
export function inFile(field: string, parameters: readonly Parameter[]): string {
  const place = /^space\[(\d+)\](.*)$/.exec(field);
  if (place !== null) return `parameters.${parameters[Number(place[1])]?.name ?? place[1] ?? ""}${place[2] ?? ""}`;
  if (field === "space" || field.startsWith("space.")) return "parameters";
  if (field === "budget.max_seconds") return "budget.max_time";
  if (field === "execution.trial_timeout_seconds") return "trial_timeout";
  return field.replace(/^execution\./, "").replace(/^objectives\[(\d+)\]\.(metric|goal)$/, "objectives[$1]");
}

const STEPS: Record<string, Step> = {
  // Of the file as a whole.
  "": "review",
  line: "review",
  the: "review",
  name: "review",
  tags: "review",
  component: "what",
  application: "what",
  digest: "what",
  start_from: "what",
  parameters: "space",
  only: "space",
  constraints: "space",
  objectives: "goals",
  outcome_constraints: "goals",
  noisy: "goals",
  budget: "budget",
  parallelism: "budget",
  trial_timeout: "budget",
  placement: "budget",
};

/** The step in which a field is looked after: what belongs to no other is the method's. */
export function stepOf(field: string): Step {
  const [head = ""] = field.split(/[.[ ]/);
  return STEPS[head] ?? "method";
}

/** The message for a field, or for anything within it. */
export function messageFor(faults: readonly Fault[], place: string): string | undefined {
  return faults.find(({ field }) => field === place || field.startsWith(`${place}.`) || field.startsWith(`${place}[`))?.message;
}
