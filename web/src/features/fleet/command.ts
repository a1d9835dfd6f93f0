import { quoted } from "@/lib/shell";

/** The command that starts an agent and enrols it. One word of a shell each: what a person has typed is quoted. */
export function enrolmentCommand(server: string, secret: string): string {
  return `trimtab-agent run \\\n    --server ${quoted(server.trim())} \\\n    --enrol ${quoted(secret)} \\\n    --components ./components`;
}
