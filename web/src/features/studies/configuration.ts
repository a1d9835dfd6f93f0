import type { Configuration, Scalar, StudySpec } from "@/lib/api/client";

export interface Row {
  name: string;
  value: Scalar | undefined;
  standard: Scalar | undefined;
  differs: boolean;
}

/** A configuration beside the default, in the order of the space; parameters that neither has are left out. */
export function compare(spec: StudySpec, configuration: Configuration, standard: Configuration): Row[] {
  return spec.space.parameters
    .map(({ name }) => ({
      name,
      value: configuration[name],
      standard: standard[name],
      differs: configuration[name] !== standard[name],
    }))
    .filter(({ value, standard }) => value !== undefined || standard !== undefined);
}
