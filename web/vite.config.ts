import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { brotliCompressSync, gzipSync } from "node:zlib";
import { lingui } from "@lingui/vite-plugin";
import react from "@vitejs/plugin-react";
import { defineConfig, type Plugin } from "vite";
import { macros } from "./macros.ts";

const SERVICE = process.env.TRIMTAB_CONSOLE_SERVICE ?? "http://127.0.0.1:8470";

/** Write FILE.gz and FILE.br for each text file of the build. The service sends them to browsers that accept them. */
function compress(): Plugin {
  let folder = "";
  return {
    name: "compress",
    apply: "build",
    configResolved(config) {
      folder = config.build.outDir;
    },
    closeBundle() {
      for (const name of readdirSync(folder, { recursive: true, encoding: "utf8" })) {
        if (!/\.(js|css|svg|html)$/.test(name)) continue;
        const file = join(folder, name);
        const content = readFileSync(file);
        writeFileSync(`${file}.gz`, gzipSync(content, { level: 9 }));
        writeFileSync(`${file}.br`, brotliCompressSync(content));
      }
    },
  };
}

// Loaded when a page first needs them: charts, editors, Markdown, the identity provider's client, and the texts of a language.
const LATER = /node_modules\/(echarts|zrender|tslib|d3-|@codemirror|@lezer|style-mod|crelt|w3c-keyname|yaml|oidc-client-ts|react-markdown|cmdk)|src\/locales|components\/(echarts|isolines|Markdown|YamlEditor)/;
// Small parts that most pages have. Each would be one more request.
const SHARED = /src\/(lib|components|app\/(addresses|titles)|features\/(\w+\/api|gallery\/entries|notifications\/titles|planning\/SampleData))|\.module\.css/;
const LIBRARIES = /node_modules\/(react|react-dom|scheduler|@tanstack|@lingui|openapi-fetch|lucide-react|radix-ui|@radix-ui|@floating-ui|react-remove-scroll|aria-hidden|use-)/;

export default defineConfig({
  plugins: [macros(), lingui({ failOnCompileError: true }), react(), compress()],
  resolve: { alias: { "@": join(import.meta.dirname, "src") } },
  build: {
    target: "es2022",
    chunkSizeWarningLimit: 700,
    cssCodeSplit: false,
    rolldownOptions: {
      output: {
        // A file for each small module would be about 80 requests for a page. What many pages share is one file.
        codeSplitting: {
          groups: [
            { name: "base", test: (id) => !LATER.test(id) && (LIBRARIES.test(id) || SHARED.test(id)), minShareCount: 2, priority: 2 },
            { name: "study", test: /src\/features\/(studies|trials|analysis|notes|matching\/RecordState)/, minShareCount: 2, priority: 1 },
          ],
        },
      },
    },
  },
  // `npm run dev` shows the data of a running service.
  server: { proxy: Object.fromEntries(["/api", "/login", "/healthz"].map((path) => [path, SERVICE])) },
});
