import { quoted } from "@/lib/shell";

/** Return the command with which a cluster's administrator reviews and installs exactly this version. */
export function pullCommand(name: string, server: string, sha256: string): string {
  return `trimtab-agent pull ${quoted(name)} \\\n    --server ${quoted(server.trim())} \\\n    --components ./components \\\n    --digest ${sha256}`;
}
