import { quoted } from "@/lib/shell";

/** The agent's environment variable for the token. All users of a machine see the arguments of its processes. */
const VARIABLE = "TRIMTAB_ENROL_TOKEN";

/** Return the command that starts an agent and enrols it, with its words quoted for a shell. */
export function enrolmentCommand(server: string, secret: string): string {
  // eslint-disable-next-line lingui/no-unlocalized-strings -- a command
  return `${VARIABLE}=${quoted(secret)} trimtab-agent run \\\n    --server ${quoted(server.trim())} \\\n    --components ./components`;
}

/** Return whether a text is an address that an agent accepts: HOST:PORT. */
export function isAddress(text: string): boolean {
  const match = /^[^\s/]+:(\d{1,5})$/.exec(text.trim());
  return match !== null && Number(match[1]) > 0 && Number(match[1]) < 65536;
}
