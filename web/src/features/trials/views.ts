import type { Shown } from "./columns";

/** A filter, an order and columns of the table of trials, under a name. */
export interface SavedView {
  name: string;
  sort?: string | undefined;
  state?: string | undefined;
  reason?: string | undefined;
  where?: string[] | undefined;
  columns: Shown[];
}

/** Return the views that were saved in this browser for `of`: a component, or a study of a script. */
export function savedViews(of: string): SavedView[] {
  try {
    const stored: unknown = JSON.parse(localStorage.getItem(key(of)) ?? "[]");
    if (Array.isArray(stored)) return stored.filter(isView);
  } catch {
    // Without storage, or with unreadable content, there are no views.
  }
  return [];
}

/** Save views in this browser. */
export function saveViews(of: string, views: readonly SavedView[]): void {
  try {
    localStorage.setItem(key(of), JSON.stringify(views));
  } catch {
    // Without storage the views last until the page is loaded again.
  }
}

function isView(one: unknown): one is SavedView {
  return typeof one === "object" && one !== null && "name" in one && typeof one.name === "string" && "columns" in one && Array.isArray(one.columns);
}

function key(of: string): string {
  return `trimtab-views:${of}`;
}
