import type { Agent } from "@/lib/api/client";

export type Mode = "apply" | "dry_run" | "off";

/** The rules of a submission host, from its agent's policy. A missing list allows everything. */
export interface Host {
  agent: string;
  name: string;
  online: boolean;
  mode: Mode;
  users: string | undefined;
  partitions: string | undefined;
  components: string | undefined;
  controlShare: string;
  cluster: string | undefined;
}

/** Return the agents that report rules for jobs, by name: registered ones that answer submission hosts. */
export function hostsOf(agents: readonly Agent[]): Host[] {
  return agents
    .flatMap(({ agent_id, name, online, policy }) => {
      const mode = policy["matching.mode"];
      if (mode === undefined) return [];
      return [
        {
          agent: agent_id,
          name,
          online,
          mode: mode as Mode,
          users: policy["matching.users"],
          partitions: policy["matching.partitions"],
          components: policy["matching.components"],
          controlShare: policy["matching.control_share"] ?? "",
          cluster: policy["matching.cluster"],
        },
      ];
    })
    .sort((one, other) => one.name.localeCompare(other.name));
}

export type Obstacle = "offline" | "off" | "dry_run" | "user" | "partition" | "component";

/* eslint-disable lingui/no-unlocalized-strings -- names of obstacles */
/** Return why a host would not apply a record's settings to a job; null if its rules allow them. */
export function obstacleOf(host: Host, job: { user: string; partition: string }, component: string): Obstacle | null {
  if (!host.online) return "offline";
  if (host.mode !== "apply") return host.mode;
  if (!allows(host.users, job.user)) return "user";
  if (!allows(host.partitions, job.partition)) return "partition";
  return host.components === undefined || namesOf(host.components).includes(component) ? null : "component";
}
/* eslint-enable lingui/no-unlocalized-strings */

function allows(patterns: string | undefined, value: string): boolean {
  return patterns === undefined || namesOf(patterns).some((pattern) => matches(pattern, value));
}

function namesOf(list: string): string[] {
  return list.split(", ");
}

/** Return whether a shell pattern of `*`, `?` and `[...]` matches the whole text. */
export function matches(pattern: string, text: string): boolean {
  const source = pattern.replace(/\[!?[^\]]+\]|[\s\S]/g, (part) => {
    if (part === "*") return "[^]*";
    if (part === "?") return "[^]";
    return part.length > 1 ? part.replace("[!", "[^").replaceAll("\\", "\\\\") : part.replace(/[\\^$.*+?()[\]{}|/-]/g, "\\$&");
  });
  try {
    return new RegExp(`^${source}$`).test(text);
  } catch {
    // A reversed range, such as [z-a], matches nothing.
    return false;
  }
}

/** Return the command that starts an agent on a host where people submit jobs. It runs no trials. */
export function submissionHostCommand(server: string): string {
  return `trimtab-agent run --server ${server} --enrol-file /etc/trimtab/enrolment --slots 0 \\\n    --components /etc/trimtab/components \\\n    --policy /etc/trimtab/policy.yaml \\\n    --match-socket /run/trimtab/match.sock`;
}
