import { t } from "@lingui/core/macro";
import compact from "@/components/CompactTable.module.css";
import type { Artifact } from "@/lib/api/client";
import { formatBytes } from "@/lib/format";
import styles from "./TrialView.module.css";

/** A table of the output files of a trial, with links that download them. */
export function Artifacts({ study, number, artifacts }: { study: string; number: number; artifacts: Artifact[] }) {
  const attempts = new Set(artifacts.map(({ attempt }) => attempt)).size > 1;
  return (
    <div className={compact.scroll}>
      <table className={compact.table}>
        <thead>
          <tr>
            <th scope="col">{t`File`}</th>
            <th scope="col">{t`Size`}</th>
            {attempts ? <th scope="col">{t`Attempt`}</th> : null}
            <th scope="col">{t`SHA-256`}</th>
          </tr>
        </thead>
        <tbody>
          {artifacts.map((artifact) => (
            <tr key={artifact.id}>
              <th scope="row" className={styles.wrapped}>
                {artifact.left_out === "" ? (
                  <a href={`/api/v1/studies/${encodeURIComponent(study)}/trials/${number}/artifacts/${artifact.id}`} download>
                    {artifact.name}
                  </a>
                ) : (
                  artifact.name
                )}
              </th>
              <td>{formatBytes(artifact.size)}</td>
              {attempts ? <td>{artifact.attempt}</td> : null}
              <td>
                {artifact.left_out === "" ? (
                  <code title={artifact.sha256}>{artifact.sha256.slice(0, 12)}</code>
                ) : (
                  <span className={styles.soft}>{t`Not stored: ${artifact.left_out}.`}</span>
                )}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
