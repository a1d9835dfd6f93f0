import type { Comparison, Scalar } from "@/lib/api/client";
import { formatValue } from "@/lib/format";

/** A parameter of compared studies: its value in each recommended configuration, and the different defaults as texts. */
export interface Row {
  name: string;
  values: (Scalar | undefined)[];
  standards: string[];
  /** The unit of each study's values; undefined: none. */
  units: (string | undefined)[];
  differs: boolean;
}

/** Return a row for each parameter that any recommended configuration has. Studies without a result do not make it differ. */
export function rowsOf(curves: readonly Pick<Comparison["curves"][number], "configuration" | "default" | "units">[]): Row[] {
  const names = [...new Set(curves.flatMap(({ configuration, default: standard }) => Object.keys(configuration ?? standard)))];
  return names.map((name) => {
    const known = curves.flatMap(({ configuration }) => (configuration === null ? [] : [configuration[name]]));
    return {
      name,
      values: curves.map(({ configuration }) => configuration?.[name]),
      standards: [...new Set(curves.map(({ default: standard, units }) => formatValue(standard[name], units[name])))],
      units: curves.map(({ units }) => units[name]),
      differs: new Set(known).size > 1,
    };
  });
}
