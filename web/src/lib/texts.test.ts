import { i18n } from "@lingui/core";
import { generateMessageId } from "@lingui/message-utils/generateMessageId";
import { afterEach, describe, expect, it } from "vitest";
import { stateText } from "@/components/Badge";
import { formatAgo, formatDuration, formatGain, formatList, formatNumber } from "./format";
import { localeFor } from "./texts";

afterEach(() => i18n.loadAndActivate({ locale: "en", messages: {} }));

/** Activate another language in which only these texts are translated. */
function speak(locale: string, texts: Record<string, string>) {
  i18n.loadAndActivate({ locale, messages: Object.fromEntries(Object.entries(texts).map(([text, translated]) => [generateMessageId(text), translated])) });
}

describe("the language", () => {
  it.each([
    [["de-AT", "en"], "de"],
    [["pt-BR", "pt"], "pt-BR"],
    [["fr", "pl-PL"], "pl"],
    [["fr"], "en"],
    [[], "en"],
  ])("of a browser that wants %j is %s", (wanted, locale) => {
    expect(localeFor(wanted, ["en", "de", "pl", "pt-BR"])).toBe(locale);
  });
});

describe("another language", () => {
  it("has its own words, plurals and numbers", () => {
    speak("pl", {
      active: "aktywne",
      "{0, plural, one {# day ago} other {# days ago}}": "{0, plural, one {# dzień temu} few {# dni temu} many {# dni temu} other {# dnia temu}}",
      "{0} min ago": "{0} min temu",
    });
    const now = new Date("2025-06-01T12:00:00Z");
    expect(stateText("ACTIVE")).toBe("aktywne");
    expect(formatAgo(new Date("2025-06-01T11:55:00Z"), now)).toBe("5 min temu");
    expect(formatAgo(new Date("2025-05-29T12:00:00Z"), now)).toBe("3 dni temu");
    expect(formatNumber(12345.678, 7)).toBe("12\u00a0345,68");
    expect(formatList(["a", "b", "c"])).toBe("a, b lub c");
  });

  it("falls back to English if a text is not translated", () => {
    speak("de", {});
    expect(stateText("PAUSED")).toBe("paused");
    expect(formatDuration(3 * 86400)).toBe("3\u202fdays");
    expect(formatGain(0.1234)).toBe("12,3\u202f%");
  });
});
