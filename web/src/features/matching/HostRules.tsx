import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { Badge } from "@/components/Badge";
import { Card } from "@/components/Card";
import { Code, Empty } from "@/components/Message";
import table from "@/components/Table.module.css";
import { submissionHostCommand, type Host, type Mode } from "./hosts";
import styles from "./matching.module.css";

// eslint-disable-next-line lingui/no-unlocalized-strings -- tones
const TONES = { apply: "good", dry_run: "info", off: "soft" } as const;

interface Props {
  hosts: readonly Host[];
  /** The address at which agents reach the service. */
  server: string;
}

/** Show for whom each submission host applies settings. The administrators of the machines decide this in their agents' policy files. */
export function HostRules({ hosts, server }: Props) {
  return (
    <Card title={t`Rules of submission hosts`} flush>
      {hosts.length === 0 ? (
        <Empty title={t`No agent has reported rules for jobs`}>
          <p>
            <Trans>
              An agent on each host where people submit jobs asks for settings and applies them. Its policy file decides about mode, users, partitions, components and control share; only
              the administrator of the machine changes it. An agent with <code>--slots 0</code> does not report its rules here. By default an agent only logs what it would do. To apply
              settings, write into its policy file:
            </Trans>
          </p>
          <Code>{`matching:
  mode: apply            # off, dry_run or apply
  users: ["ann", "proj-*"]
  partitions: [main]
  control_share: 0.05`}</Code>
          <p>{t`Then start it:`}</p>
          <Code>{submissionHostCommand(server)}</Code>
        </Empty>
      ) : (
        <>
          <table className={table.table}>
            <thead>
              <tr>
                <th scope="col">{t`Agent`}</th>
                <th scope="col">{t`Mode`}</th>
                <th scope="col">{t`Users`}</th>
                <th scope="col">{t`Partitions`}</th>
                <th scope="col">{t`Components`}</th>
                <th scope="col">{t`Control share`}</th>
                <th scope="col">{t`Cluster`}</th>
              </tr>
            </thead>
            <tbody>
              {hosts.map((host) => (
                <tr key={host.agent}>
                  <th scope="row">
                    {host.name} {host.online ? null : <span className={styles.soft}>{t`offline`}</span>}
                  </th>
                  <td data-label={t`Mode`}>
                    <Badge tone={TONES[host.mode]}>{modeText(host.mode)}</Badge>
                  </td>
                  <td data-label={t`Users`}>{host.users ?? t`all`}</td>
                  <td data-label={t`Partitions`}>{host.partitions ?? t`all`}</td>
                  <td data-label={t`Components`}>{host.components ?? t`all`}</td>
                  <td data-label={t`Control share`}>{host.controlShare}</td>
                  <td data-label={t`Cluster`}>{host.cluster ?? t`as the scheduler says`}</td>
                </tr>
              ))}
            </tbody>
          </table>
          <div className={styles.more}>
            <p className={styles.note}>
              <Trans>
                Only the administrator of a machine changes its rules: under the key <code>matching</code> of the agent’s policy file. The service cannot change them. Restart the agent
                after a change. Agents with <code>--slots 0</code> do not report their rules here.
              </Trans>
            </p>
          </div>
        </>
      )}
    </Card>
  );
}

function modeText(mode: Mode): string {
  const texts = { apply: t`on`, dry_run: t`dry run`, off: t`off` };
  return texts[mode];
}
