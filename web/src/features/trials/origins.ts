import { i18n, type MessageDescriptor } from "@lingui/core";
import { msg } from "@lingui/core/macro";
import type { Trial } from "@/lib/api/client";

const NAMES: Record<Trial["origin"], MessageDescriptor> = {
  suggested: msg`suggested`,
  replicate: msg`replicate`,
  check: msg`check`,
  default: msg`default`,
  added: msg`added`,
  enqueued: msg`enqueued`,
  earlier: msg`earlier study`,
};

/** What a trial came from, as a word. */
export function originText(origin: Trial["origin"]): string {
  return i18n._(NAMES[origin]);
}
