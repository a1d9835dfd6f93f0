import { transformAsync } from "@babel/core";
import type { Plugin } from "vite";

/** Replace the text macros (`t`, `Trans`, `plural`, …) by look-ups in the catalogue, before other plugins read a file. */
export function macros(): Plugin {
  return {
    name: "macros",
    enforce: "pre",
    transform: {
      filter: { id: /\/src\/.*\.tsx?$/, code: "@lingui/" },
      async handler(code, id) {
        const made = await transformAsync(code, {
          filename: id,
          plugins: ["@lingui/babel-plugin-lingui-macro"],
          parserOpts: { plugins: ["typescript", "jsx"] },
          configFile: false,
          babelrc: false,
          sourceMaps: true,
        });
        return made?.code ? { code: made.code, map: made.map } : null;
      },
    },
  };
}
