import { ApiError } from "@/lib/api/client";
import { FileFault } from "./studyFile";

/** A fault of a study, and its path in the file. */
export interface Fault {
  field: string;
  message: string;
}

export type Step = "what" | "space" | "goals" | "method" | "budget" | "review";

/** The field that an error of the service is about where the error itself names none. */
const FIELDS: Record<string, string> = { study_exists: "name", component_not_found: "component" };

/** The place in the file that the service or the reading of the file has refused. */
export function faultOf(error: Error): Fault {
  const { message } = error;
  if (error instanceof FileFault) return { field: error.field, message };
  if (!(error instanceof ApiError)) return { field: "", message };
  const { field } = error.data;
  return { field: FIELDS[error.code] ?? (typeof field === "string" && field !== "file" ? field : ""), message };
}

const STEPS: Record<string, Step> = {
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
  algorithm: "method",
  seed: "method",
  resampling: "method",
  estimator: "method",
  pruning: "method",
  stopping: "method",
  final_check: "method",
  budget: "budget",
  parallelism: "budget",
  trial_timeout: "budget",
  placement: "budget",
};

/** Return the step that shows a field. The review shows the fields of no other step, and the file as a whole. */
export function stepOf(field: string): Step {
  const [head = ""] = field.split(/[.[ ]/);
  return STEPS[head] ?? "review";
}

/** Return the message for a field or a path below it. */
export function messageFor(faults: readonly Fault[], place: string): string | undefined {
  return faults.find(({ field }) => field === place || field.startsWith(`${place}.`) || field.startsWith(`${place}[`))?.message;
}
