import js from "@eslint/js";
import jsxA11y from "eslint-plugin-jsx-a11y";
import lingui from "eslint-plugin-lingui";
import reactHooks from "eslint-plugin-react-hooks";
import tseslint from "typescript-eslint";

/** Forbid imports between layers: shared code imports no feature, and a feature imports neither the app nor another feature. */
function layer(files, forbidden, message) {
  return {
    files,
    rules: {
      "no-restricted-imports": ["error", { patterns: [{ group: forbidden, message }, { group: ["../*"], message: "Import with @/." }] }],
    },
  };
}

/** Strings that are not texts: names of HTML, ECharts, the service and the browser. All others go through the catalogue. */
const notTexts = {
  ignore: [
    "^Trimtab$|· Trimtab$|^SVG$|^SHA-256$|^Ctrl K$|^Esc$|^English$|^Deutsch$",
    // Shell commands and code of scripts.
    "^(import trimtab|study = client|trimtab-|trimtab |cat |~/\\.local|#!/|sbatch |matching:)",
    // States, actions, fields, addresses, languages.
    "^[A-Z_]+$|^[a-z]+([._][a-z_]+)+$|^/|^en(-GB)?$",
    // CSS, and keys in the browser's storage.
    "^--?[a-z]|^var\\(|^rgb|^#[0-9a-f]{6}$|^(light|dark)$|^\\(prefers-|^(trimtab|matching)[-:]|@example\\.org$|^https://chat\\.example\\.org|^(url|email|webhook|mail)$",
    // Units are the same everywhere.
    "^(ns|µs|ms|s|min|h|B|[KMG]iB|\\s)+$",
    "^(ascending|descending|nearest|flow|property|constant|error|e|\\{b\\}|a|b)$|^(study|component|change):+$|^index\\.html |^ApiError$|^unreachable$|^unknown$|^messages$",
    // Conditions on columns, which are the same in every language.
    "^[a-z]+ (=|!=|~|>) [a-z0-9]+$|^where$",
    // Words and paths of study files and of the API.
    "^(minimize|maximize|min|max|values|any|all|only|stopping|true|false|read|tune|number|state)$|^(parameters|ranges|objectives|weights)[.\\[]",
  ],
  ignoreNames: [
    "className", "kind", "type", "role", "to", "by", "field", "step", "href", "src", "id", "key", "height", "width", "style", "rel", "target", "scope",
    "at", "just", "autoComplete", "autoCapitalize", "inputMode", "action",
    { regex: { pattern: "^aria-(hidden|live|current|busy|sort|keyshortcuts|labelledby|describedby|invalid)$" } },
    // Names of charts, colours and queries.
    "symbol", "position", "align", "trigger", "nameLocation", "color", "borderColor", "backgroundColor", "fillerColor", "overflow", "renderer", "renderMode",
    "filterMode", "queryKey", "stack", "networkMode", "staleTime", "defaultPreload", "replaceMerge", "sort", "needs", "keywords", "tone", "section", "tab", "show", "connection",
  ],
  ignoreFunctions: [
    "api.*", "may", "import", "lazyRouteComponent", "matchMedia", "EventSource", "Set", "Map", "Intl.*", "URLSearchParams", "document.*", "read",
    "*.addEventListener", "*.closest", "*.querySelector", "*.removeEventListener", "*.getItem", "*.setItem", "*.removeItem", "*.startsWith", "*.endsWith", "*.includes", "*.split",
    "*.replace", "*.replaceAll", "*.match", "*.has", "*.get", "*.set", "*.on", "*.off", "*.slice", "*.indexOf", "JSON.*", "*.localeCompare", "saveText", "useState", "EditorView.*", "HighlightStyle.*", "FIRST.*",
    // Paths in a study file.
    "edit", "mapping", "list", "policy", "draft.set", "draft.setAll", "messageFor", "change", "about", "fault", "errorAt",
  ],
};

const features = ["session", "studies", "trials", "fleet", "components", "planning", "access", "analysis", "matching", "notifications", "notes"];

export default tseslint.config(
  { ignores: ["dist", "node_modules", "src/lib/api/_gen", "public"] },
  js.configs.recommended,
  ...tseslint.configs.strictTypeChecked,
  jsxA11y.flatConfigs.strict,
  reactHooks.configs.flat.recommended,
  {
    languageOptions: {
      parserOptions: {
        projectService: { allowDefaultProject: ["eslint.config.js", "lingui.config.js", "vitest.config.ts", "scripts/*.mjs"] },
        tsconfigRootDir: import.meta.dirname,
      },
    },
    rules: {
      "@typescript-eslint/restrict-template-expressions": ["error", { allowNumber: true }],
      "@typescript-eslint/no-confusing-void-expression": ["error", { ignoreArrowShorthand: true }],
      // TanStack Router's `redirect` is thrown, and it is not an Error.
      "@typescript-eslint/only-throw-error": ["error", { allow: [{ from: "package", package: "@tanstack/router-core", name: "Redirect" }] }],
    },
  },
  {
    files: ["src/**/*.{ts,tsx}"],
    // The files with names of fields and columns contain no texts.
    ignores: ["src/**/*.test.{ts,tsx}", "src/testing/**", "src/features/planning/{faults,rules}.ts", "src/features/trials/columns.ts", "src/lib/columns.ts"],
    plugins: { lingui },
    rules: {
      "lingui/no-unlocalized-strings": ["error", { useTsTypes: true, ...notTexts }],
      "lingui/t-call-in-function": "error",
      "lingui/no-single-tag-to-translate": "error",
      "lingui/no-single-variables-to-translate": "error",
      "lingui/no-trans-inside-trans": "error",
    },
  },
  { files: ["scripts/*.mjs", "*.js"], ...tseslint.configs.disableTypeChecked, languageOptions: { globals: { process: "readonly", console: "readonly" } } },
  layer(["src/lib/**", "src/components/**", "src/testing/**"], ["@/features/**", "@/app/**"], "Shared code must not import features or the app."),
  ...features.map((feature) =>
    layer(
      [`src/features/${feature}/**`],
      ["@/app/**", ...features.filter((other) => other !== feature).map((other) => `@/features/${other}/**`)],
      "A feature knows neither the app nor another feature: the app puts them together.",
    ),
  ),
);
