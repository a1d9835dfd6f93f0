import { quoted } from "@/lib/shell";

/** Return the command that starts an agent and enrols it, quoted for a shell. All users see the arguments of a process, so the token is in the environment. */
export function enrolmentCommand(server: string, secret: string): string {
  return `TRIMTAB_ENROL_TOKEN=${quoted(secret)} trimtab-agent run \\\n    --server ${quoted(server.trim())} \\\n    --components ./components`;
}

/** Return whether a text is an address that an agent accepts: HOST:PORT. */
export function isAddress(text: string): boolean {
  const match = /^[^\s/]+:(\d{1,5})$/.exec(text.trim());
  return match !== null && Number(match[1]) > 0 && Number(match[1]) < 65536;
}
