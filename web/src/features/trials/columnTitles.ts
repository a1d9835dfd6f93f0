import { i18n, type MessageDescriptor } from "@lingui/core";
import { msg } from "@lingui/core/macro";
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

/** Return the title of a column: the name of its metric or parameter, or a text. */
export function titleOf(column: Shown): string {
  const title = TITLES[column];
  return title === undefined ? column.slice(column.indexOf(":") + 1) : i18n._(title);
}
