import { quoted } from "@/lib/shell";

/** The command with which a cluster's administrator looks at this very text, and installs it. */
export function pullCommand(name: string, server: string, sha256: string): string {
  return `trimtab-agent pull ${quoted(name)} \\\n    --server ${quoted(server.trim())} \\\n    --components ./components \\\n    --digest ${sha256}`;
}
