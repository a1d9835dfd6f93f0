import { i18n, type Messages } from "@lingui/core";

const CATALOGUES = import.meta.glob<Messages>("/src/locales/*.po", { import: "messages" });

/** Return the first wanted language that has a catalogue, or English. The catalogue "de" serves "de-AT". */
export function localeFor(wanted: readonly string[], there: readonly string[]): string {
  for (const tag of wanted) {
    const found = [tag, tag.split("-")[0]].find((one) => one !== undefined && there.includes(one));
    if (found !== undefined) return found;
  }
  return "en";
}

/** Load the texts in the browser's language. Must be done before anything is shown. */
export async function loadTexts(): Promise<void> {
  const there = Object.fromEntries(Object.entries(CATALOGUES).map(([path, load]) => [path.replace(/^.*\/|\.po$/g, ""), load]));
  const locale = localeFor(navigator.languages, Object.keys(there));
  const messages = await there[locale]?.();
  i18n.loadAndActivate({ locale, messages: messages ?? {} });
  document.documentElement.lang = locale;
}
