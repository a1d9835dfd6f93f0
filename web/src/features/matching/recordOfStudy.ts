import type { MatchingRecord, Study } from "@/lib/api/client";

/** Return the record of a study among those of its name: a deleted study may have had the same name. */
export function recordOf({ created_at }: Pick<Study, "created_at">, records: readonly MatchingRecord[]): MatchingRecord | undefined {
  return records.find((record) => record.cause !== "deletion" && Date.parse(record.created_at) >= Date.parse(created_at));
}
