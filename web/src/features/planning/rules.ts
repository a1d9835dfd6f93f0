/** A stopping rule of the file: a name with options, or a combination of rules by any or all. */
export type Rule = Record<string, unknown>;
export type Word = "any" | "all";

/** Return the word by which a rule combines others, if it does. */
export function wordOf(rule: unknown): Word | null {
  if (typeof rule !== "object" || rule === null) return null;
  return "any" in rule ? "any" : "all" in rule ? "all" : null;
}

/** Return the rules that a rule combines. */
export function partsOf(rule: unknown): Rule[] {
  const word = wordOf(rule);
  const parts: unknown = word === null ? undefined : (rule as Rule)[word];
  return Array.isArray(parts) ? parts.map((part) => (typeof part === "object" && part !== null ? (part as Rule) : {})) : [];
}

/** Return a rule with one more, empty rule. A single rule becomes a combination by any. */
export function withAnother(rule: Rule): Rule {
  const word = wordOf(rule);
  return word === null ? { any: [rule, { rule: "" }] } : { [word]: [...partsOf(rule), { rule: "" }] };
}

/** Return a rule without one part: the remaining rule of two, or undefined for a single rule. */
export function without(rule: Rule, place: number): Rule | undefined {
  const word = wordOf(rule) ?? "any";
  const rest = partsOf(rule).filter((_, index) => index !== place);
  return rest.length < 2 ? rest[0] : { [word]: rest };
}

/** Return a rule with one part replaced. */
export function withPart(rule: Rule, place: number, part: Rule): Rule {
  const word = wordOf(rule) ?? "any";
  return { [word]: partsOf(rule).map((one, index) => (index === place ? part : one)) };
}
