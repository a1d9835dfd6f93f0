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
