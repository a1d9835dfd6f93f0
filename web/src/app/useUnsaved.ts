import { t } from "@lingui/core/macro";
import { useBlocker } from "@tanstack/react-router";

/** Ask for confirmation before the user leaves a page with unsaved changes. */
export function useUnsaved(isUnsaved: () => boolean) {
  useBlocker({
    shouldBlockFn: () => isUnsaved() && !window.confirm(t`Leave this page? Your changes will be lost.`),
    enableBeforeUnload: isUnsaved,
  });
}
