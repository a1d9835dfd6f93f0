import { i18n, type MessageDescriptor } from "@lingui/core";
import { msg } from "@lingui/core/macro";

/** The errors of the service that users meet most, by their codes. English readers see the service's own sentence, which says more. */
const FAULTS: Record<string, MessageDescriptor> = {
  invalid_token: msg`The token is wrong.`,
  unauthenticated: msg`You are not signed in.`,
  not_permitted: msg`Your role does not permit this.`,
  study_exists: msg`There is already a study with this name.`,
  study_not_found: msg`The study does not exist.`,
  trial_not_found: msg`The trial does not exist.`,
  record_not_found: msg`The record does not exist.`,
  component_not_found: msg`The component does not exist.`,
  channel_exists: msg`There is already a channel to this address.`,
  quota_exceeded: msg`The tenant has reached a limit.`,
  invalid_step: msg`The present state does not allow this step.`,
  mail_not_configured: msg`The service has no mail server.`,
};

/** Return the text of an error in the language of the console. A code without a text has the service's own sentence. */
export function faultText(code: string | undefined, detail: string): string {
  const known = code === undefined ? undefined : FAULTS[code];
  return known === undefined || i18n.locale === "en" ? detail : `${i18n._(known)} (${detail})`;
}
