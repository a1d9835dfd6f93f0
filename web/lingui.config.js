import { defineConfig } from "@lingui/cli";
import { formatter } from "@lingui/format-po";

export default defineConfig({
  sourceLocale: "en",
  // web/README.md says how to add a language.
  locales: ["en", "de"],
  fallbackLocales: { default: "en" },
  catalogs: [{ path: "<rootDir>/src/locales/{locale}", include: ["src"], exclude: ["src/lib/api/_gen/**", "**/*.test.ts"] }],
  format: formatter({ lineNumbers: false }),
});
