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

const KEY = "trimtab-language";
/** The languages that have a catalogue, by their tags, each in its own words. */
export const LANGUAGES: Record<string, string> = { en: "English", de: "Deutsch" };

/** Return the tag of the language that the user has chosen; empty: the browser's language. */
export function chosenLanguage(): string {
  try {
    return localStorage.getItem(KEY) ?? "";
  } catch {
    return "";
  }
}

/** Choose a language, or with an empty tag that of the browser, and load the console in it. */
export function chooseLanguage(tag: string): void {
  if (tag === "") localStorage.removeItem(KEY);
  else localStorage.setItem(KEY, tag);
  location.reload();
}

/** Load the texts in the language that the user has chosen, or in the browser's. Must be done before anything is shown. */
export async function loadTexts(): Promise<void> {
  const there = Object.fromEntries(Object.entries(CATALOGUES).map(([path, load]) => [path.replace(/^.*\/|\.po$/g, ""), load]));
  const locale = localeFor([chosenLanguage(), ...navigator.languages], Object.keys(there));
  const messages = await there[locale]?.();
  i18n.loadAndActivate({ locale, messages: messages ?? {} });
  document.documentElement.lang = locale;
}
