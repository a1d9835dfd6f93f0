import { t } from "@lingui/core/macro";
import type { Trial } from "@/lib/api/client";
import { formatPercent } from "@/lib/format";

/** Return what the agent measured of other processes during a trial, as a sentence; "" if it measured nothing. */
export function interferenceText({ share, wait }: NonNullable<Trial["interference"]>): string {
  if (share === undefined) return "";
  const taken = formatPercent(share, 0);
  if (wait === undefined) return t`Other processes took ${taken} of the CPUs.`;
  const waited = formatPercent(wait, 0);
  return t`Other processes took ${taken} of the CPUs; the run waited ${waited} of its time.`;
}
