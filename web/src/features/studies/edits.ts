import { parse } from "yaml";
import type { Configuration, Parameter, Scalar, Study } from "@/lib/api/client";
import { textOf, valueOf } from "@/lib/values";

/** An edit in the API's form. */
export interface Edit {
  add?: Parameter[];
  remove?: Record<string, Scalar | null>;
  fix?: Configuration;
  free?: string[];
}

// eslint-disable-next-line lingui/no-unlocalized-strings -- identifiers
export const CHOICES = ["searched", "fixed", "removed"] as const;
export type Choice = (typeof CHOICES)[number];

/** What the user has chosen for a parameter, and the typed text of its value. */
export interface Chosen {
  choice: Choice;
  value: string;
}

/** Return the present choice of each parameter of the space. */
export function chosenOf({ spec, fixed }: Study): Record<string, Chosen> {
  return Object.fromEntries(
    spec.space.parameters.map((parameter) => {
      const value = fixed[parameter.name];
      const chosen: Chosen = value === undefined ? { choice: "searched", value: textOf(parameter.default) } : { choice: "fixed", value: textOf(value) };
      return [parameter.name, chosen];
    }),
  );
}

/** Return the edit that the choices and the declarations (YAML) make. Throws an Error if the YAML cannot be read. */
export function editOf(study: Study, chosen: Readonly<Record<string, Chosen>>, declarations: string): Edit {
  const before = chosenOf(study);
  const edit: Edit = {};
  const add = declared(declarations);
  if (add.length > 0) edit.add = add;
  for (const parameter of study.spec.space.parameters) {
    const { name } = parameter;
    const now = chosen[name];
    const was = before[name];
    if (now === undefined || was === undefined) continue;
    const value = scalarOf(parameter, now.value);
    if (now.choice === "removed") (edit.remove ??= {})[name] = value === "" ? null : value;
    else if (now.choice === "fixed" && (was.choice !== "fixed" || was.value !== now.value.trim())) (edit.fix ??= {})[name] = value;
    else if (now.choice === "searched" && was.choice === "fixed") (edit.free ??= []).push(name);
  }
  return edit;
}

/** Return the value that a text means. A known choice keeps its type, so that the text "1" stays a text. */
function scalarOf(parameter: Parameter, text: string): Scalar {
  const known = parameter.values ?? [];
  const same = known.find((value) => textOf(value) === text.trim());
  if (same !== undefined) return same;
  // A fixed parameter has only its present value; its other choices probably have the same type.
  return known.length > 0 && known.every((value) => typeof value === "string") ? text.trim() : valueOf(text);
}

/** Return the parameters that a YAML text declares: a line for each, as below `parameters` in a study file. */
function declared(text: string): Parameter[] {
  const content: unknown = parse(text);
  if (content === null || content === undefined) return [];
  if (typeof content !== "object" || Array.isArray(content)) throw new Error(EXAMPLE);
  return Object.entries(content).map(([name, keys]) => {
    if (typeof keys !== "object" || keys === null) throw new Error(EXAMPLE);
    return { ...(keys as Omit<Parameter, "name">), name };
  });
}

/** An example of a declaration. */
// eslint-disable-next-line lingui/no-unlocalized-strings -- YAML
export const EXAMPLE = "cache: {type: int, min: 1, max: 64, default: 8}";

/** Return whether an error is about this parameter: fix.NAME, remove.NAME. */
export function isFaultOf(field: unknown, name: string): boolean {
  return field === `fix.${name}` || field === `remove.${name}`;
}
