import { t } from "@lingui/core/macro";
import { defaultFilter } from "cmdk";
import type { StudyState } from "@/lib/api/client";

export interface StudyCommand {
  /** The states of a study that allow the command. */
  from: readonly StudyState[];
  /** The state after the command; null for stop, which asks for the state. */
  to: "PAUSED" | "ACTIVE" | null;
  text: (name: string) => string;
}

export const STUDY_COMMANDS: readonly StudyCommand[] = [
  { from: ["ACTIVE"], to: "PAUSED", text: (name) => t`Pause ${name}` },
  { from: ["PAUSED"], to: "ACTIVE", text: (name) => t`Resume ${name}` },
  { from: ["ACTIVE", "PAUSED"], to: null, text: (name) => t`Stop ${name} …` },
];

function wordsOf(text: string): string[] {
  return text.toLocaleLowerCase().split(/[\s…]+/).filter((word) => word !== "");
}

/** Return the words of a command without the name of a study, in any language. */
function verbsOf({ text }: StudyCommand): string[] {
  return wordsOf(text(""));
}

/** Return whether the typed text names no study: it is empty or the beginning of a command. */
export function namesNone(typed: string): boolean {
  const verbs = STUDY_COMMANDS.flatMap(verbsOf);
  return wordsOf(typed).every((word) => verbs.some((verb) => verb.startsWith(word)));
}

/** Return the states and the part of a name that a typed command selects studies by. No states: the text is no command. */
export function meantBy(typed: string): { states: StudyState[]; name: string } {
  const words = wordsOf(typed);
  const commands = STUDY_COMMANDS.filter((command) => verbsOf(command).some((verb) => words.includes(verb)));
  const verbs = commands.flatMap(verbsOf);
  return { states: [...new Set(commands.flatMap(({ from }) => from))], name: words.filter((word) => !verbs.includes(word)).join(" ") };
}

/** Return the value that identifies a command of a study among all items. */
export function valueOf(name: string, { to }: StudyCommand): string {
  return `change:${to ?? "STOP"}:${name}`;
}

/** Return how well an item matches the typed text: by its texts, else by its value. Commands of a study match whole words only. */
export function score(value: string, typed: string, texts: readonly string[] = []): number {
  const command = STUDY_COMMANDS.find((one) => value.startsWith(valueOf("", one)));
  if (command === undefined) return defaultFilter(texts.length > 0 ? texts.join(" ") : value, typed);
  const words = wordsOf(typed);
  const verbs = verbsOf(command);
  if (namesNone(typed)) return words.every((word) => verbs.some((verb) => verb.startsWith(word))) ? 0.5 : 0;
  const own = wordsOf(command.text(value.slice(valueOf("", command).length))).join(" ");
  if (!words.every((word) => own.includes(word))) return 0;
  return words.join(" ") === own ? 1 : 0.5;
}
