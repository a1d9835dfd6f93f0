import type { Comparison, Scalar } from "@/lib/api/client";

/** A parameter of compared studies: its value in each recommended configuration, and the different defaults. */
export interface Row {
  name: string;
  values: (Scalar | undefined)[];
  standards: (Scalar | undefined)[];
  differs: boolean;
}

/** Return a row for each parameter that any recommended configuration has. Studies without a result do not make it differ. */
export function rowsOf(curves: readonly Pick<Comparison["curves"][number], "configuration" | "default">[]): Row[] {
  const names = [...new Set(curves.flatMap(({ configuration, default: standard }) => Object.keys(configuration ?? standard)))];
  return names.map((name) => {
    const known = curves.flatMap(({ configuration }) => (configuration === null ? [] : [configuration[name]]));
    return {
      name,
      values: curves.map(({ configuration }) => configuration?.[name]),
      standards: [...new Set(curves.map(({ default: standard }) => standard[name]))],
      differs: new Set(known).size > 1,
    };
  });
}
