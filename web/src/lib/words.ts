

/** Return the name that is most similar to a text that somebody has typed, or undefined if none is similar. */
export function nearest(typed: string, names: readonly string[]): string | undefined {
  const wanted = typed.trim().toLowerCase();
  if (wanted === "") return undefined;
  const most = Math.max(1, Math.floor(wanted.length / 3));
  const [best] = names
    .map((name) => ({ name, edits: distance(wanted, name.toLowerCase()) }))
    .filter(({ edits }) => edits <= most)
    .sort((one, other) => one.edits - other.edits);
  return best?.name;
}

/** Return the number of insertions, deletions, replacements and swaps of neighbours that turn one text into the other. */
function distance(one: string, other: string): number {
  let before: number[] = [];
  let row = Array.from({ length: other.length + 1 }, (_, index) => index);
  for (let i = 1; i <= one.length; i += 1) {
    const next = [i];
    for (let j = 1; j <= other.length; j += 1) {
      const replaced = (row[j - 1] ?? 0) + (one[i - 1] === other[j - 1] ? 0 : 1);
      const swapped = i > 1 && j > 1 && one[i - 1] === other[j - 2] && one[i - 2] === other[j - 1] ? (before[j - 2] ?? 0) + 1 : Infinity;
      next.push(Math.min(replaced, swapped, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    before = row;
    row = next;
  }
  return row[other.length] ?? 0;
}

/** Return whether the texts together contain every word of the search, in any case. An empty search matches all. */
export function contains(search: string, texts: readonly string[]): boolean {
  const all = texts.join("\n").toLowerCase();
  return search.toLowerCase().split(/\s+/).every((word) => all.includes(word));
}

/** Quote a word for a POSIX shell. */
export function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}
