import { t } from "@lingui/core/macro";
import { useInfiniteQuery } from "@tanstack/react-query";
import { useMemo, type ReactNode } from "react";
import { Card } from "@/components/Card";
import compact from "@/components/CompactTable.module.css";
import { CopyButton } from "@/components/Button";
import { Loading, Problem } from "@/components/Message";
import { On } from "@/components/Time";
import type { MatchingRecord } from "@/lib/api/client";
import { formatGain, formatGainInterval } from "@/lib/format";
import type { Units } from "@/lib/space";
import { conditionText } from "@/lib/verdicts";
import { jobsQuery } from "./api";
import { FeedbackText } from "./Feedback";
import styles from "./matching.module.css";
import { RecordReason } from "./RecordState";
import { runTimesOf, RunTimesPlot } from "./RunTimes";

// The service returns at most so many jobs at once.
const MOST_JOBS = 500;

interface Props {
  record: MatchingRecord;
  /** The units of the settings, as far as they are known. */
  units: Units;
  study: ReactNode;
  component: ReactNode;
  /** A link to the jobs that considered the record. */
  jobs: ReactNode;
}

/** Show a record: its state, the settings that it applies, the job that was tuned, and how later jobs fared. */
export function RecordView({ record, units, study, component, jobs }: Props) {
  const { job, params } = record;
  return (
    <>
      <p>
        <RecordReason record={record} />
      </p>
      <dl className={styles.facts}>
        <Fact name={t`Component`}>
          {component}
          {record.application === "" ? "" : ` / ${record.application}`}
        </Fact>
        <Fact name={t`Study`}>{study}</Fact>
        <Fact name={record.cause === "approval" ? t`Gain` : t`Proven gain`}>
          <span className={record.cause === "approval" ? undefined : styles.good}>{formatGain(record.gain)}</span>{" "}
          <span className={styles.soft}>95 %: {formatGainInterval({ low: record.gain_low, high: record.gain_high })}</span>
        </Fact>
        {record.conditions.length === 0 ? null : (
          <Fact name={t`Conditions`}>
            {record.conditions.map((condition) => (
              <span key={condition.text} className={styles.part}>
                {conditionText(condition)}
              </span>
            ))}
          </Fact>
        )}
        <Fact name={t`Written`}>
          <On at={record.created_at} />
        </Fact>
        <Fact name={t`Digest of the component`}>
          {record.digest === "" ? "—" : <code title={record.digest}>{record.digest.slice(0, 12)}</code>}
        </Fact>
      </dl>
      <div className={styles.halves}>
        <Card title={t`Settings that it applies`} flush actions={<CopyButton text={JSON.stringify(params, null, 2)} label={t`Copy as JSON`} />}>
          <div className={compact.scroll}>
            <table className={compact.table}>
              <thead>
                <tr>
                  <th scope="col">{t`Parameter`}</th>
                  <th scope="col">{t`Value`}</th>
                </tr>
              </thead>
              <tbody>
                {Object.entries(params).map(([name, value]) => (
                  <tr key={name}>
                    <th scope="row">
                      <code>{name}</code>
                    </th>
                    <td>
                      {/* It may be copied into a command, so its digits are not grouped. */}
                      <code>{String(value)}</code>
                      {units[name] === undefined ? null : <span className={styles.soft}> {units[name]}</span>}
                    </td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        </Card>
        <Card title={t`Tuned job`}>
          <dl className={styles.facts}>
            <Fact name={t`User`}>{job.user || "—"}</Fact>
            <Fact name={t`Job name`}>{job.name || "—"}</Fact>
            <Fact name={t`Program`}>{job.program || "—"}</Fact>
            <Fact name={t`Nodes`}>{String(job.nodes)}</Fact>
            <Fact name={t`Submitted`}>
              <On at={job.submitted_at} />
            </Fact>
            <Fact name={t`Command`}>{job.command_line === "" ? "—" : <code className={styles.command}>{job.command_line}</code>}</Fact>
          </dl>
        </Card>
      </div>
      <Card title={t`How its jobs fared`} actions={jobs}>
        <Fared record={record} />
      </Card>
    </>
  );
}

function Fared({ record }: { record: MatchingRecord }) {
  const { data, error, refetch } = useInfiniteQuery(jobsQuery({ record: record.id }, MOST_JOBS));
  const page = data?.pages[0];
  const times = useMemo(() => runTimesOf(record, page?.jobs ?? []), [record, page]);
  if (page === undefined) return error === null ? <Loading what={t`jobs`} /> : <Problem error={error} again={() => void refetch()} />;
  const some = times.applied.length + times.control.length > 0;
  return (
    <div className={styles.values}>
      <p>
        <FeedbackText feedback={record.feedback} />
      </p>
      {some ? <RunTimesPlot record={record} times={times} /> : null}
      <p className={styles.note}>
        {some
          ? t`Only completed jobs count that were submitted after the present settings became active. The difference compares geometric means within equal numbers of nodes; agents choose the controls at random.`
          : t`Completed jobs appear here that were submitted after the present settings became active: with the settings, and as controls without them. In a dry run nothing is applied, so there is nothing to compare.`}
      </p>
      {page.next_page_token === "" ? null : <p className={styles.note}>{t`The plot shows the latest of ${String(MOST_JOBS)} jobs. The difference counts all of them.`}</p>}
    </div>
  );
}

function Fact({ name, children }: { name: string; children: ReactNode }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}
