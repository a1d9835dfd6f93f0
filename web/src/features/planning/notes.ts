import { i18n } from "@lingui/core";
import { t } from "@lingui/core/macro";
import type { Methods } from "@/lib/api/client";

// The notes on methods and their options are texts of the service. Each language has a file: the texts by the service's.
// eslint-disable-next-line lingui/no-unlocalized-strings -- the name of an export
const FILES = import.meta.glob<Record<string, string>>("/src/locales/methods.*.json", { import: "default" });
const NOT_INSTALLED = /^Not installed here \((.*?)\)\. /;

/** Return the methods with their notes in the language of the console. A note without a translation stays English. */
export async function translated(methods: Methods): Promise<Methods> {
  const notes = await FILES[`/src/locales/methods.${i18n.locale}.json`]?.();
  if (notes === undefined) return methods;
  const texts = new Map(Object.entries(notes));
  const note = (doc: string): string => {
    const [start = "", remedy = ""] = NOT_INSTALLED.exec(doc) ?? [];
    const text = doc.slice(start.length);
    return (start === "" ? "" : `${t`Not installed here (${remedy}).`} `) + (texts.get(text) ?? text);
  };
  const all = <Entry extends { doc: string; options: { doc: string }[] }>(entries: Entry[]): Entry[] =>
    entries.map((one) => ({ ...one, doc: note(one.doc), options: one.options.map((option) => ({ ...option, doc: note(option.doc) })) }));
  const { algorithms, resampling, estimators, pruning, stopping } = methods;
  return { ...methods, algorithms: all(algorithms), resampling: all(resampling), estimators: all(estimators), pruning: all(pruning), stopping: all(stopping) };
}
