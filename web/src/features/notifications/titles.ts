import { i18n, type MessageDescriptor } from "@lingui/core";
import { msg, t } from "@lingui/core/macro";
import type { Notice } from "@/lib/api/client";

/** The kinds of notifications that a channel can receive, in the words of a list. */
export const KINDS: [Exclude<Notice["kind"], "test">, MessageDescriptor][] = [
  ["study.ended", msg`A study ends`],
  ["study.failed", msg`A study fails`],
  ["study.gain_proven", msg`A study proves a gain`],
  ["record.withdrawn", msg`A record of the matching is withdrawn`],
];

/** Return a kind of notification in the words of a list. */
export function kindText(kind: string): string {
  const known = KINDS.find(([name]) => name === kind);
  return known === undefined ? t`Test` : i18n._(known[1]);
}

/** Return the title of a notification. */
export function titleOf({ kind, study }: Pick<Notice, "kind" | "study">): string {
  switch (kind) {
    case "study.ended":
      return t`${study} has ended`;
    case "study.failed":
      return t`${study} has failed and is paused`;
    case "study.gain_proven":
      return t`${study} has proven a gain`;
    case "record.withdrawn":
      return t`The record of ${study} was withdrawn`;
    case "test":
      return t`Test of a channel`;
  }
}
