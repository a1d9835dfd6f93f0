import { t } from "@lingui/core/macro";
import { useBlocker } from "@tanstack/react-router";

/** Asks before a page is left while something that was written there is not kept. */
export function useUnsaved(isUnsaved: () => boolean) {
  useBlocker({
    shouldBlockFn: () => isUnsaved() && !window.confirm(t`Leave? What you have written is not kept.`),
    enableBeforeUnload: isUnsaved,
  });
}
