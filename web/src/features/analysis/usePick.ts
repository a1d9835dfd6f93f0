import { useCallback } from "react";

/** Return a handler that opens the trial of a clicked point. The trial's number is the third value of the point. */
export function usePick(onPick: (trial: number) => void) {
  return useCallback(
    (item: unknown) => {
      if (Array.isArray(item) && typeof item[2] === "number") onPick(item[2]);
    },
    [onPick],
  );
}
