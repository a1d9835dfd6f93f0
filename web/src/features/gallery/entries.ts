import { t } from "@lingui/core/macro";
import type { Gallery } from "@/lib/api/client";
import { formatList, formatNumber } from "@/lib/format";
import { inLanguage } from "./api";

export type Entry = Gallery["entries"][number];

/** Return what identifies an entry, also in addresses: sqlite/durable.yml. */
export function keyOf({ component, study }: Entry): string {
  return `${component}/${study}`;
}

/** Return the packages that are installed for a component. */
export function packagesText({ packages }: Entry): string {
  return formatList(packages.map(({ name, by }) => (by === "pip" ? t`${name} (pip)` : name)), "conjunction");
}

/** Return what was measured, in a few words: CPU time of a read: 58.9 % less (41 to 72.5). */
export function gainText(entry: Entry): string {
  const measure = inLanguage(entry.measure);
  const { gain, low, high } = entry;
  if (gain === null) return t`${measure}: not measured yet`;
  if (low === null || high === null) return t`${measure}: ${formatNumber(gain)} % less`;
  const [from, to] = [formatNumber(low), formatNumber(high)];
  if (entry.evidence === "no_gain") return t`${measure}: no measurable gain (${from} to ${to} %)`;
  return t`${measure}: ${formatNumber(gain)} % less (${from} to ${to})`;
}

/** Return how the gain is known. */
export function evidenceText(entry: Entry): string | null {
  if (entry.evidence === "proven") return t`Proven by the final check of a study; the range is the 95 % interval.`;
  if (entry.settings === null) return null;
  return t`Measured without a study, with ${inLanguage(entry.settings)}.`;
}

/** Return the commands that show what a component gains, and that offer it to this service. */
export function commandsOf({ component, application }: Entry, server: string): string {
  const only = application === "" ? "" : ` --application ${application}`;
  return `trimtab-agent prepare ${component}
trimtab-agent try ${component}${only}
trimtab-agent run \\
    --server ${server} \\
    --token-file admin-token \\
    --components "$(trimtab-agent workloads ${component})"`;
}
