import { quoted } from "@/lib/shell";

/** Return the command that starts an agent and enrols it, with its arguments quoted for a shell. */
export function enrolmentCommand(server: string, secret: string): string {
  return `trimtab-agent run \\\n    --server ${quoted(server.trim())} \\\n    --enrol ${quoted(secret)} \\\n    --components ./components`;
}

/** Return whether a text is an address that an agent accepts: HOST:PORT. */
export function isAddress(text: string): boolean {
  const match = /^[^\s/]+:(\d{1,5})$/.exec(text.trim());
  return match !== null && Number(match[1]) > 0 && Number(match[1]) < 65536;
}
