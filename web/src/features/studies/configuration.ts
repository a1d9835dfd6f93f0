import type { Configuration, StudySpec } from "@/lib/api/client";

/** The parameters of which any of these configurations has a value, in the order of the space. */
export function namesOf(spec: StudySpec, ...configurations: Configuration[]): string[] {
  return spec.space.parameters.map(({ name }) => name).filter((name) => configurations.some((configuration) => name in configuration));
}
