/** Return the command that starts an agent on a host where people submit jobs. It runs no trials. */
export function submissionHostCommand(server: string): string {
  return `trimtab-agent run --server ${server} --enrol-file /etc/trimtab/enrolment --slots 0 \\\n    --components /etc/trimtab/components \\\n    --policy /etc/trimtab/policy.yaml \\\n    --match-socket /run/trimtab/match.sock`;
}
