import { ApiError, type Parameter } from "@/lib/api/client";
import { FileFault } from "./studyFile";

/** What is wrong with a study, and where in its file. */
export interface Fault {
  field: string;
  message: string;
}

export type Step = "what" | "space" | "goals" | "method" | "budget" | "review";

/** The place in the file of what the service or the reading of the file has refused. */
export function faultOf(error: Error, parameters: readonly Parameter[]): Fault {
  if (error instanceof FileFault) return { field: error.field, message: error.message };
  const field = error instanceof ApiError && typeof error.data.field === "string" ? error.data.field : "";
  return { field: inFile(field, parameters), message: error.message };
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
export function messageFor(fault: Fault | null, field: string): string | undefined {
  if (fault === null) return undefined;
  const within = fault.field === field || fault.field.startsWith(`${field}.`) || fault.field.startsWith(`${field}[`);
  return within ? fault.message : undefined;
}
