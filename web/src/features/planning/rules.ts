/** A stopping rule as it stands in the file: one by name with its options, or several of which any or all end the search. */
export type Rule = Record<string, unknown>;
export type Word = "any" | "all";

/** Whether a rule joins others, and by which word. */
export function wordOf(rule: unknown): Word | null {
  if (typeof rule !== "object" || rule === null) return null;
  return "any" in rule ? "any" : "all" in rule ? "all" : null;
}

/** The rules that a rule joins. */
export function partsOf(rule: unknown): Rule[] {
  const word = wordOf(rule);
  const parts: unknown = word === null ? undefined : (rule as Rule)[word];
  return Array.isArray(parts) ? parts.map((part) => (typeof part === "object" && part !== null ? (part as Rule) : {})) : [];
}

/** A rule with one more beside it, that is still to be chosen. A single one becomes one of any. */
export function withAnother(rule: Rule): Rule {
  const word = wordOf(rule);
  return word === null ? { any: [rule, { rule: "" }] } : { [word]: [...partsOf(rule), { rule: "" }] };
}

/** A rule without the part at this place. What is left of two stands by itself; nothing is left of one. */
export function without(rule: Rule, place: number): Rule | undefined {
  const word = wordOf(rule) ?? "any";
  const rest = partsOf(rule).filter((_, index) => index !== place);
  return rest.length < 2 ? rest[0] : { [word]: rest };
}

/** A rule with another at this place. */
export function withPart(rule: Rule, place: number, part: Rule): Rule {
  const word = wordOf(rule) ?? "any";
  return { [word]: partsOf(rule).map((one, index) => (index === place ? part : one)) };
}
