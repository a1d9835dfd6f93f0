import type { Configuration, StudySpec } from "@/lib/api/client";

/** Return the parameters that have a value in any of these configurations, in the order of the space. */
export function namesOf(spec: StudySpec, ...configurations: Configuration[]): string[] {
  return spec.space.parameters.map(({ name }) => name).filter((name) => configurations.some((configuration) => name in configuration));
}
