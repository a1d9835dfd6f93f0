import { i18n, type MessageDescriptor } from "@lingui/core";
import { msg } from "@lingui/core/macro";
import type { Trial } from "@/lib/api/client";

const NAMES: Record<Trial["origin"], MessageDescriptor> = {
  suggested: msg`suggested`,
  replicate: msg`replicate`,
  check: msg`final check`,
  default: msg`default`,
  added: msg`added`,
  enqueued: msg`enqueued`,
  earlier: msg`earlier study`,
};

/** Return the text of a trial's origin. */
export function originText(origin: Trial["origin"]): string {
  return i18n._(NAMES[origin]);
}
