/** A position in a YAML text, found by the indentation of the lines above: a mapping such as `parameters.run`, and a field. */
export interface Place {
  /** The mapping that the line belongs to: names joined by dots, empty for the file itself. */
  path: string;
  /** The field whose value is being typed; undefined while its name is being typed. */
  field?: string;
}

const KEY = /^(\s*)(- )?("[^"]*"|'[^']*'|[^\s:#{[][^:#]*?)\s*:(\s|$)/;

/** Return the place of a column in a line. A mapping in braces has its own place: `run: {type: |`. */
export function placeOf(lines: readonly string[], line: number, column: number): Place {
  const before = (lines[line] ?? "").slice(0, column);
  const own = KEY.exec(before);
  const indentation = /^\s*(- )?/.exec(before)?.[0].length ?? 0;
  const path = above(lines, line, indentation);
  if (own === null) return { path: path.join(".") };
  const field = unquoted(own[3] ?? "");
  const brace = before.lastIndexOf("{");
  if (brace < (own[0].length - 1) || before.indexOf("}", brace) !== -1) return { path: path.join("."), field };
  const inner = before.slice(brace + 1).split(",").at(-1) ?? "";
  const key = /^\s*([\w-]+)\s*:/.exec(inner)?.[1];
  const within = [...path, field].join(".");
  return key === undefined ? { path: within } : { path: within, field: key };
}

/** Return the words that are allowed at a place. The keys of `words` are places, with a star for any name. */
export function wordsAt(words: Readonly<Record<string, readonly string[]>>, { path, field }: Place): readonly string[] {
  const whole = [...(path === "" ? [] : path.split(".")), ...(field === undefined ? [] : [field])];
  const found = Object.keys(words).find((pattern) => {
    const parts = pattern === "" ? [] : pattern.split(".");
    return parts.length === whole.length && parts.every((part, index) => part === "*" || part === whole[index]);
  });
  return found === undefined ? [] : (words[found] ?? []);
}

function above(lines: readonly string[], line: number, indentation: number): string[] {
  const path: string[] = [];
  let least = indentation;
  for (let index = line - 1; index >= 0 && least > 0; index -= 1) {
    const match = KEY.exec(lines[index] ?? "");
    if (match === null) continue;
    const depth = (match[1] ?? "").length + (match[2] ?? "").length;
    if (depth < least) {
      path.unshift(unquoted(match[3] ?? ""));
      least = depth;
    }
  }
  return path;
}

function unquoted(key: string): string {
  return key.replace(/^(["'])(.*)\1$/, "$2").trim();
}
