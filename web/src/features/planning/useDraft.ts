import { useMemo, useState } from "react";
import { edit, FileFault, read, type Path, type StudyFile } from "./studyFile";

export interface Draft {
  text: string;
  /** The parsed text; the last valid one while the text is not YAML. */
  file: StudyFile;
  /** The error of a text that cannot be parsed. */
  unreadable: FileFault | null;
  setText: (text: string) => void;
  /** Set one value of the file, or remove it. */
  set: (path: Path, value: unknown) => void;
  /** Set several values at once. */
  setAll: (changes: readonly (readonly [Path, unknown])[]) => void;
}

/** A draft of a study: one text, which the form reads and changes. */
export function useDraft(first: string): Draft {
  const [text, setText] = useState(first);
  const [readable, setReadable] = useState(first);
  const unreadable = useMemo(() => {
    try {
      read(text);
      return null;
    } catch (error) {
      if (error instanceof FileFault) return error;
      throw error;
    }
  }, [text]);
  const file = useMemo(() => read(unreadable === null ? text : readable), [text, readable, unreadable]);

  function change(next: string) {
    if (unreadable === null) setReadable(text);
    setText(next);
  }
  const setAll: Draft["setAll"] = (changes) => {
    const base = unreadable === null ? text : readable;
    change(changes.reduce((before, [path, value]) => edit(before, path, value), base));
  };
  return { text, file, unreadable, setText: change, set: (path, value) => setAll([[path, value]]), setAll };
}

/** A draft that was not created yet: its study file and tags. */
export interface Kept {
  text: string;
  tags: string;
}

/** Return the key of the drafts that begin with a study, a component or an entry of the gallery; without a name: with nothing. */
export function sourceOf(kind: "clone" | "component" | "gallery", name = ""): string {
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
