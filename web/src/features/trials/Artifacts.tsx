import { t } from "@lingui/core/macro";
import { useState } from "react";
import { Conditions } from "@/components/Conditions";
import compact from "@/components/CompactTable.module.css";
import type { Artifact } from "@/lib/api/client";
import { select, type Columns } from "@/lib/conditions";
import { formatBytes } from "@/lib/format";
import styles from "./TrialView.module.css";

const COLUMNS: Columns<Artifact> = {
  file: { text: ({ name }) => name },
  bytes: { number: ({ size }) => size },
  attempt: { number: ({ attempt }) => attempt },
  sha256: { text: ({ sha256 }) => sha256 },
};

/** A table of the output files of a trial, with links that download them. */
export function Artifacts({ study, number, artifacts }: { study: string; number: number; artifacts: Artifact[] }) {
  const attempts = new Set(artifacts.map(({ attempt }) => attempt)).size > 1;
  const [where, setWhere] = useState<readonly string[]>([]);
  const { rows, wrong } = select(artifacts, where, COLUMNS);
  return (
    <>
      {artifacts.length < 2 ? null : <Conditions where={where} columns={Object.keys(COLUMNS)} example="file ~ json" wrong={wrong} matches={rows.length} onChange={(next) => setWhere(next ?? [])} />}
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
            {rows.map((artifact) => (
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
    </>
  );
}
