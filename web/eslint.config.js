import js from "@eslint/js";
import jsxA11y from "eslint-plugin-jsx-a11y";
import reactHooks from "eslint-plugin-react-hooks";
import tseslint from "typescript-eslint";

/** Files of `layer` must not import from these layers: shared code knows no feature, a feature neither the app nor another feature. */
function layer(files, forbidden, message) {
  return {
    files,
    rules: {
      "no-restricted-imports": ["error", { patterns: [{ group: forbidden, message }, { group: ["../*"], message: "Import with @/." }] }],
    },
  };
}

const features = ["session", "studies", "trials", "fleet", "components", "planning", "access", "analysis"];

export default tseslint.config(
  { ignores: ["dist", "node_modules", "src/lib/api/_gen", "public"] },
  js.configs.recommended,
  ...tseslint.configs.strictTypeChecked,
  jsxA11y.flatConfigs.strict,
  reactHooks.configs.flat.recommended,
  {
    languageOptions: {
      parserOptions: {
        projectService: { allowDefaultProject: ["eslint.config.js", "vitest.config.ts", "scripts/*.mjs"] },
        tsconfigRootDir: import.meta.dirname,
      },
    },
    rules: {
      "@typescript-eslint/restrict-template-expressions": ["error", { allowNumber: true }],
      "@typescript-eslint/no-confusing-void-expression": ["error", { ignoreArrowShorthand: true }],
      // Thrown by TanStack Router's own `redirect`, which is not an Error.
      "@typescript-eslint/only-throw-error": ["error", { allow: [{ from: "package", package: "@tanstack/router-core", name: "Redirect" }] }],
    },
  },
  { files: ["scripts/*.mjs", "*.js"], ...tseslint.configs.disableTypeChecked, languageOptions: { globals: { process: "readonly", console: "readonly" } } },
  layer(["src/lib/**", "src/components/**", "src/testing/**"], ["@/features/**", "@/app/**"], "Shared code knows neither features nor the app."),
  ...features.map((feature) =>
    layer(
      [`src/features/${feature}/**`],
      ["@/app/**", ...features.filter((other) => other !== feature).map((other) => `@/features/${other}/**`)],
      "A feature knows neither the app nor another feature: the app puts them together.",
    ),
  ),
);
