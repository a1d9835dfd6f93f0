import { useMemo } from "react";
import type { Study, Trial } from "@/lib/api/client";
import { present } from "@/lib/space";

/** Return the trials that count in the study's present space, with the configurations with which they count. */
export function useInside(study: Study, trials: Trial[]): Trial[] {
  const { space_version: version, spec, removed, imputed } = study;
  return useMemo(() => {
    if (version === 1) return trials;
    return trials.flatMap((trial) => {
      const params = present({ spec, removed, imputed }, trial.params);
      return params === null ? [] : [{ ...trial, params }];
    });
  }, [version, spec, removed, imputed, trials]);
}
