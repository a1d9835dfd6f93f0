import { t } from "@lingui/core/macro";
import type { JobToMatch } from "@/lib/api/client";
import { quoted } from "@/lib/shell";
import type { JobFields } from "./job";

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
