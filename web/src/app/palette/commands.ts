import { t } from "@lingui/core/macro";
import { defaultFilter } from "cmdk";
import type { StudyState } from "@/lib/api/client";

export interface StudyCommand {
  /** In which states a study can be told so. */
  from: readonly StudyState[];
  /** What becomes of it; null: it is to be stopped, and there are several ways to. */
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

/** What a command is called without the name of a study, in any language. */
function verbsOf({ text }: StudyCommand): string[] {
  return wordsOf(text(""));
}

/** Whether what is typed names no study: it is the beginning of a command, or nothing. */
export function namesNone(typed: string): boolean {
  const verbs = STUDY_COMMANDS.flatMap(verbsOf);
  return wordsOf(typed).every((word) => verbs.some((verb) => verb.startsWith(word)));
}

/** Which studies a typed command can be meant for: in one of these states (none: no command is typed), with this in their names. */
export function meantBy(typed: string): { states: StudyState[]; name: string } {
  const words = wordsOf(typed);
  const commands = STUDY_COMMANDS.filter((command) => verbsOf(command).some((verb) => words.includes(verb)));
  const verbs = commands.flatMap(verbsOf);
  return { states: [...new Set(commands.flatMap(({ from }) => from))], name: words.filter((word) => !verbs.includes(word)).join(" ") };
}

/** What tells a command of a study from all other items. */
export function valueOf(name: string, { to }: StudyCommand): string {
  return `change:${to ?? "STOP"}:${name}`;
}

/** How well an item matches what is typed: by its texts where it has some, else by its value. A command of a study only word for word. */
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
