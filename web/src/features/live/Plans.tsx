import { plural, t } from "@lingui/core/macro";
import { useQuery } from "@tanstack/react-query";
import { useState, type ReactNode } from "react";
import { Badge } from "@/components/Badge";
import { Button } from "@/components/Button";
import { Dialog, DialogActions } from "@/components/Dialog";
import { TextField } from "@/components/Field";
import { Problem } from "@/components/Message";
import type { LivePlan, LiveStatus, Scalar } from "@/lib/api/client";
import { changeText } from "@/lib/effects";
import { formatList, formatNumber, formatTime, formatValue } from "@/lib/format";
import { reasonText } from "@/lib/reasons";
import { sessionQuery, useMay } from "@/lib/session";
import { useDecide } from "./api";
import styles from "./live.module.css";

/** Show the plans that wait or run, and let administrators approve or decline those that wait for people. */
export function Plans({ status, link }: { status: LiveStatus; link: (number: number, text: string) => ReactNode }) {
  if (status.plans.length === 0) return <p className={styles.soft}>{t`No trial waits.`}</p>;
  return (
    <ul className={styles.plans}>
      {status.plans.map((plan) => (
        <li key={plan.trial}>
          <header>
            <h3>{link(plan.trial, t`Trial ${String(plan.trial)}`)}</h3>
            <Badge tone={plan.state === "PLANNED" ? "warn" : plan.trial_state === "ACTIVE" ? "accent" : "soft"} alive={plan.trial_state === "ACTIVE"}>
              {plan.state === "PLANNED" ? t`waits for an approval` : plan.trial_state === "ACTIVE" ? t`runs` : t`waits`}
            </Badge>
            {plan.restarts ? <Badge tone="warn">{t`restarts the system`}</Badge> : null}
          </header>
          <Changes changes={plan.changes} />
          <Outlook plan={plan} />
          {plan.state === "PLANNED" ? <Decision plan={plan} study={status.study} /> : plan.reason === "" ? null : <p className={styles.soft}>{reasonText(plan.reason, plan.reason_data)}</p>}
        </li>
      ))}
    </ul>
  );
}

/** Show parameters with their present and their new value. */
export function Changes({ changes }: { changes: Record<string, unknown> }) {
  return (
    <ul className={styles.changes}>
      {Object.entries(changes).map(([name, pair]) => {
        const [before, after] = pair as [Scalar | null, Scalar];
        return (
          <li key={name}>
            <code>{name}</code> {before === null ? "?" : formatValue(before)} → <strong>{formatValue(after)}</strong>
          </li>
        );
      })}
    </ul>
  );
}

function Outlook({ plan: { expected, worst } }: { plan: LivePlan }) {
  if (expected === null) return null;
  const most = worst === null ? "" : changeText(worst);
  return <p className={styles.soft}>{most === "" ? t`The model expects ${changeText(expected)}.` : t`The model expects ${changeText(expected)}, and hardly ever more than ${most}.`}</p>;
}

function Decision({ plan, study }: { plan: LivePlan; study: string }) {
  const may = useMay();
  const { data: session } = useQuery(sessionQuery);
  const decide = useDecide(study, plan.trial);
  const [declining, setDeclining] = useState(false);
  const [reason, setReason] = useState("");
  const people = plan.approvals.map(({ actor }) => String(actor));
  const isMine = session !== undefined && people.includes(session.actor);
  const until = formatTime(new Date(plan.expires_at));
  return (
    <>
      <p className={styles.soft}>
        {people.length > 0 ? t`${formatList(people, "conjunction")} has approved it, and a second person must approve it, too.` : plan.people > 1 ? t`${formatNumber(plan.people)} people must approve it.` : null}{" "}
        {t`The plan is valid until ${until}.`}
      </p>
      {may("live.approve") ? (
        <div className={styles.buttons}>
          <Button kind="primary" small disabled={decide.isPending || isMine} onClick={() => decide.mutate({ approve: true, reason: "" })}>
            {t`Approve trial ${String(plan.trial)}`}
          </Button>
          <Dialog
            open={declining}
            onOpenChange={setDeclining}
            title={t`Decline trial ${String(plan.trial)}?`}
            trigger={<Button small disabled={decide.isPending}>{t`Decline …`}</Button>}
          >
            <p>{t`Another candidate takes its place. The budget is not charged.`}</p>
            <TextField label={t`Reason, which people see`} value={reason} maxLength={1000} onChange={(event) => setReason(event.target.value)} />
            <DialogActions>
              <Button onClick={() => setDeclining(false)}>{t`Cancel`}</Button>
              <Button kind="danger" disabled={decide.isPending} onClick={() => decide.mutate({ approve: false, reason }, { onSuccess: () => setDeclining(false) })}>
                {t`Decline`}
              </Button>
            </DialogActions>
          </Dialog>
        </div>
      ) : (
        <p className={styles.soft}>{plural(plan.people, { one: "An administrator approves it.", other: "# administrators approve it." })}</p>
      )}
      {decide.error === null ? null : <Problem error={decide.error} />}
    </>
  );
}
