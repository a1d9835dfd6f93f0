import { quoted } from "@/lib/shell";
import type { Configuration } from "@/lib/api/client";
import { textOf } from "@/lib/values";

/** Return the command that shows, on the agent's machine, how the agent would run a configuration. */
export function tryCommand(component: string, application: string, configuration: Configuration): string {
  const settings = Object.entries(configuration).map(([name, value]) => `    --set ${quoted(`${name}=${textOf(value)}`)}`);
  const named = application === "" ? [] : [`    --application ${quoted(application)}`];
  return [`trimtab-agent try ${quoted(component)} --dry-run --components ./components`, ...named, ...settings].join(" \\\n");
}
