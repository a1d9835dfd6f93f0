import { useMemo } from "react";
import type { Study, Trial } from "@/lib/api/client";
import { isInside } from "@/lib/scale";

/** Return the trials whose configurations lie in the study's present space. Its ranges may have changed since they were measured. */
export function useInside(study: Study, trials: Trial[]): Trial[] {
  const { space_version: version } = study;
  const { parameters } = study.spec.space;
  return useMemo(() => (version === 1 ? trials : trials.filter(({ params }) => isInside(parameters, params))), [version, parameters, trials]);
}
