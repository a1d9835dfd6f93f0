import { plural, t } from "@lingui/core/macro";
import { Fragment, type ReactNode } from "react";
import { Badge } from "@/components/Badge";
import { Card } from "@/components/Card";
import type { LiveStatus } from "@/lib/api/client";
import { changeText, intervalText } from "@/lib/effects";
import { formatNumber, formatTime } from "@/lib/format";
import styles from "./live.module.css";

interface Props {
  status: LiveStatus;
  link: (number: number, text: string) => ReactNode;
}

/** Show to which instances kept settings have gone, which are held back, and what the checks since have found. */
export function Rollout({ status: { rollout, checks, details }, link }: Props) {
  const last = checks.at(-1);
  if (rollout === null && last === undefined) return null;
  return (
    <Card
      title={rollout === null ? t`Checks of the kept settings` : t`Roll-out of trial ${String(rollout.trial)}`}
      actions={rollout === null ? undefined : link(rollout.trial, t`Trial ${String(rollout.trial)}`)}
    >
      {rollout === null ? null : <Stages rollout={rollout} />}
      {last === undefined ? null : <Check metric={details.metric} check={last} />}
    </Card>
  );
}

function Stages({ rollout }: { rollout: NonNullable<LiveStatus["rollout"]> }) {
  const { stages, stage, watched_until: until, due_at: due } = rollout;
  const groups: [string, readonly string[]][] = [
    [t`Kept on`, rollout.in_force],
    [t`Waiting`, rollout.waiting],
    [t`Held back, for comparison`, rollout.held_back],
  ];
  return (
    <dl className={styles.groups}>
      <dt>{t`Stages`}</dt>
      <dd>
        <ol className={styles.stages}>
          {stages.map((count, place) => (
            <li key={count}>
              <Badge tone={place < stage ? "good" : "soft"}>{plural(count, { one: "# instance", other: "# instances" })}</Badge>
              <span className="visually-hidden"> {place < stage ? t`done` : t`to come`}</span>
            </li>
          ))}
        </ol>
      </dd>
      {groups.map(([name, instances]) =>
        instances.length === 0 ? null : (
          <Fragment key={name}>
            <dt>{name}</dt>
            <dd>{instances.join(", ")}</dd>
          </Fragment>
        ),
      )}
      {until === null ? null : (
        <>
          <dt>{t`Watched until`}</dt>
          <dd>{formatTime(new Date(until))}</dd>
        </>
      )}
      {until === due ? null : (
        <>
          <dt>{until === null ? t`Next trial` : t`Next check`}</dt>
          <dd>{formatTime(new Date(due))}</dd>
        </>
      )}
    </dl>
  );
}

function Check({ metric, check }: { metric: string; check: LiveStatus["checks"][number] }) {
  if (check.effect === null) return null;
  const [change, pairs] = [changeText(check.effect), formatNumber(check.pairs)];
  const interval = intervalText(check.low, check.high);
  return (
    <p>
      {t`Against the settings of the start: ${metric} ${change} in ${pairs} pairs`}
      {interval === null ? "." : <span className={styles.soft}> {t`(95 % interval, valid at each look: ${interval}).`}</span>}
    </p>
  );
}
