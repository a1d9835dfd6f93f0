import type { Configuration, Invocation } from "@/lib/api/client";
import { formatValue } from "@/lib/format";
import { quoted } from "@/lib/words";
import type { Units } from "@/lib/space";

/** Return a configuration as YAML. Every value is also JSON, which YAML includes. */
export function yamlText(params: Configuration): string {
  return Object.entries(params)
    .map(([name, value]) => `${keyText(name)}: ${JSON.stringify(value)}\n`)
    .join("");
}

/** Quote a key that YAML 1.1 or 1.2 would read as something other than this text. */
function keyText(name: string): string {
  return /^[A-Za-z_][\w.-]*$/.test(name) && !/^(y|n|yes|no|on|off|true|false|null)$/i.test(name) ? name : JSON.stringify(name);
}

/** Return the commands of a run as a shell would run them, each with its environment variables. */
export function commandText({ commands }: Invocation): string {
  return commands
    .map(({ argv, environment }) => [...Object.entries(environment).map(([name, value]) => `${name}=${quoted(value)}`), ...argv.map(quoted)].join(" "))
    .join("\n");
}

/** Return the environment variables of a run as shell commands; a variable that several commands set has its last value. */
export function exportText({ commands }: Invocation): string {
  const variables = new Map(commands.flatMap(({ environment }) => Object.entries(environment)));
  // eslint-disable-next-line lingui/no-unlocalized-strings -- a command
  return [...variables].map(([name, value]) => `export ${name}=${quoted(value)}\n`).join("");
}

/** Return a configuration as options of a command line, by the names of its parameters. */
export function optionText(params: Configuration): string {
  return Object.entries(params)
    .map(([name, value]) => quoted(`--${name}=${String(value)}`))
    .join(" ");
}

/** Return a configuration as shell variables, by the names of its parameters. */
export function variableText(params: Configuration): string {
  return Object.entries(params)
    .map(([name, value]) => `${name}=${quoted(String(value))}\n`)
    .join("");
}

/** Return the parameters whose values differ from the default, a line for each: "cache: 8 → 11 MiB". */
export function differenceText(params: Configuration, standard: Configuration, units: Units): string {
  return [...new Set([...Object.keys(standard), ...Object.keys(params)])]
    .filter((name) => params[name] !== standard[name])
    .map((name) => `${name}: ${formatValue(standard[name])} → ${formatValue(params[name], units[name])}\n`)
    .join("");
}
