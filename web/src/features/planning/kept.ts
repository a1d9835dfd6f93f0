/** A draft that was not created yet: its study file and tags. */
export interface Kept {
  text: string;
  tags: string;
}

/** Return the key of the drafts that begin with a study or a component; without a name: with nothing. */
export function sourceOf(kind: "clone" | "component", name = ""): string {
  return `${kind}:${name}`;
}

const PREFIX = "trimtab-draft:";

/** Return the draft of this source (`clone:NAME`, `component:NAME`) that the tab has kept, or null. */
export function keptDraft(source: string): Kept | null {
  try {
    const kept = JSON.parse(sessionStorage.getItem(PREFIX + source) ?? "null") as Partial<Kept> | null;
    return typeof kept?.text === "string" && typeof kept.tags === "string" ? { text: kept.text, tags: kept.tags } : null;
  } catch {
    return null;
  }
}

/** Keep a draft in this tab, so that a reload does not lose it; null removes it. Without storage nothing is kept. */
export function keepDraft(source: string, draft: Kept | null): void {
  try {
    if (draft === null) sessionStorage.removeItem(PREFIX + source);
    else sessionStorage.setItem(PREFIX + source, JSON.stringify(draft));
  } catch {
    return;
  }
}
