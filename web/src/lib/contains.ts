/** Return whether the texts together contain every word of the search, in any case. An empty search matches all. */
export function contains(search: string, texts: readonly string[]): boolean {
  const all = texts.join("\n").toLowerCase();
  return search.toLowerCase().split(/\s+/).every((word) => all.includes(word));
}
