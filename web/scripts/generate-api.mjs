// Writes src/lib/api/_gen/schema.ts: the types of the REST interface, from the OpenAPI schema of the service.
// Needs the service's Python environment, but no database. PYTHON names the interpreter; default: the repository's .venv.
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import openapiTS, { astToString } from "openapi-typescript";

const web = dirname(dirname(fileURLToPath(import.meta.url)));
const root = dirname(web);
const target = join(web, "src/lib/api/_gen/schema.ts");
const own = join(root, ".venv/bin/python");
const python = process.env.PYTHON ?? (existsSync(own) ? own : "python3");

let schema;
try {
  schema = execFileSync(python, ["-m", "service.manage", "spectacular", "--format", "openapi-json", "--fail-on-warn"], {
    cwd: root,
    encoding: "utf8",
    maxBuffer: 64 * 1024 * 1024,
    env: { ...process.env, DJANGO_SETTINGS_MODULE: "service.config.settings.test" },
  });
} catch (error) {
  console.error(`The OpenAPI schema could not be made with ${python}: run \`uv sync\` first, or set PYTHON.\n${error.message}`);
  process.exit(1);
}

const types = astToString(await openapiTS(JSON.parse(schema), { alphabetize: true }));
if (!existsSync(target) || readFileSync(target, "utf8") !== types) {
  mkdirSync(dirname(target), { recursive: true });
  writeFileSync(target, types);
}
