import { i18n, type MessageDescriptor } from "@lingui/core";
import { msg } from "@lingui/core/macro";
import { titled, type Units } from "@/lib/units";
import { DIFFERENCES, type Shown } from "./columns";

const TITLES: Partial<Record<Shown, MessageDescriptor>> = {
  agent: msg`Measured by`,
  duration: msg`Duration`,
  [DIFFERENCES]: msg`Differences from the default`,
  origin: msg`Origin`,
  attempt: msg`Attempt`,
  started: msg`Started`,
  reason: msg`Reason`,
};

/** Return the title of a column: the name of its metric, that of its parameter with the unit, or a text. */
export function titleOf(column: Shown, units: Units = {}): string {
  const title = TITLES[column];
  if (title !== undefined) return i18n._(title);
  const name = column.slice(column.indexOf(":") + 1);
  return titled(name, column.startsWith("param:") ? units[name] : undefined);
}
