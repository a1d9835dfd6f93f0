import type { Study } from "@/lib/api/client";

/** Whether the study has started a trial. */
export function hasBegun(study: Study): boolean {
  return study.finished_count + study.active_count > 0;
}
