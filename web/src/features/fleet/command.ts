import { quoted } from "@/lib/shell";

/** The command that starts an agent and enrols it. One word of a shell each: what a person has typed is quoted. */
export function enrolmentCommand(server: string, secret: string): string {
  return `trimtab-agent run \\\n    --server ${quoted(server.trim())} \\\n    --enrol ${quoted(secret)} \\\n    --components ./components`;
}

/** Whether an agent can read it as the service's address: HOST:PORT. */
export function isAddress(text: string): boolean {
  const match = /^[^\s/]+:(\d{1,5})$/.exec(text.trim());
  return match !== null && Number(match[1]) > 0 && Number(match[1]) < 65536;
}
