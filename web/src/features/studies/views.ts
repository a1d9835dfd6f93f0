const KEY = "trimtab-study-views";

/** Return the saved views of the list of studies, by their names. Without storage, or if it holds anything else: none. */
export function readViews(): Record<string, string> {
  try {
    const stored: unknown = JSON.parse(localStorage.getItem(KEY) ?? "{}");
    if (typeof stored !== "object" || stored === null) return {};
    return Object.fromEntries(Object.entries(stored).filter((entry): entry is [string, string] => typeof entry[1] === "string"));
  } catch {
    return {};
  }
}

/** Save the views. Without storage they last until the page is left. */
export function writeViews(views: Record<string, string>): void {
  try {
    localStorage.setItem(KEY, JSON.stringify(views));
  } catch {
    return;
  }
}
