import { i18n, type MessageDescriptor } from "@lingui/core";
import { msg, t } from "@lingui/core/macro";
import type { Notice } from "@/lib/api/client";

/** The kinds of notifications that a channel can receive, in the words of a list. */
export const KINDS: [Exclude<Notice["kind"], "test">, MessageDescriptor][] = [
  ["study.ended", msg`A study ends`],
  ["study.failed", msg`A study fails`],
  ["study.gain_proven", msg`A study proves a gain`],
  ["record.withdrawn", msg`A record of the matching is withdrawn`],
  ["live.approval_waiting", msg`A live trial waits for an approval`],
  ["live.kept", msg`A live study keeps settings`],
  ["live.guard_broken", msg`A live trial breaks a guard`],
  ["live.reverted", msg`Settings of a live study are taken back`],
  ["live.stuck", msg`Settings of a live study cannot be taken back`],
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
    case "live.approval_waiting":
      return t`A live trial of ${study} waits for an approval`;
    case "live.kept":
      return t`${study} has kept settings`;
    case "live.guard_broken":
      return t`A live trial of ${study} has broken a guard`;
    case "live.reverted":
      return t`Settings of ${study} were taken back`;
    case "live.stuck":
      return t`Settings of ${study} cannot be taken back: a person must act`;
    case "test":
      return t`Test of a channel`;
  }
}
