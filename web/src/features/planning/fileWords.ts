import type { Methods } from "@/lib/api/client";

/* eslint-disable lingui/no-unlocalized-strings -- words of the file */
const OF_PARAMETER = ["type", "min", "max", "values", "default", "log", "step", "factor", "unit", "condition"];
const TYPES = ["float", "int", "ordinal", "categorical", "bool"];
const BOOLEAN = ["true", "false"];

/** Return the words that a study file may have at each place, as `lib/place.ts` reads them. */
export function wordsOf(methods: Methods | undefined, parameters: readonly string[]): Record<string, readonly string[]> {
  if (methods === undefined) return {};
  const words: Record<string, string[]> = { "": [] };
  const add = (place: string, word: string) => {
    const known = (words[place] ??= []);
    if (word !== "" && !known.includes(word)) known.push(word);
  };
  for (const { path, kind } of methods.file_keys) {
    const parts = path.split(".");
    parts.forEach((part, depth) => add(parts.slice(0, depth).join("."), part));
    if (kind === "boolean") words[path] = BOOLEAN;
  }
  const { algorithms, resampling, estimators, pruning, stopping } = methods;
  for (const [key, entries] of Object.entries({ algorithm: algorithms, resampling, estimator: estimators, pruning, stopping })) {
    for (const { name } of entries) {
      add(key, name);
      add(`${key}.name`, name);
    }
  }
  for (const name of parameters) add("parameters", name);
  return { ...words, "parameters.*": OF_PARAMETER, "parameters.*.type": TYPES, "context.*": [...OF_PARAMETER, "at"], "context.*.type": TYPES };
}
/* eslint-enable lingui/no-unlocalized-strings */
