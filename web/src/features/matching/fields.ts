import { i18n, type MessageDescriptor } from "@lingui/core";
import { msg } from "@lingui/core/macro";

/** The fields that are compared, as the service names and orders them. */
const FIELDS: Record<string, MessageDescriptor> = {
  user: msg`User`,
  name: msg`Job name`,
  program: msg`Program`,
  path: msg`Path of the program`,
  options: msg`Options`,
  second: msg`Second`,
  minute: msg`Minute`,
  hour: msg`Hour`,
  day: msg`Day of the month`,
  weekday: msg`Day of the week`,
  night: msg`Night or day`,
  nodes: msg`Nodes`,
};

/** Return the name of a compared field for people. */
export function fieldText(field: string): string {
  const known = FIELDS[field];
  return known === undefined ? field : i18n._(known);
}
