import { plural, t } from "@lingui/core/macro";
import { OctagonX } from "lucide-react";
import { useState } from "react";
import { Button } from "@/components/Button";
import { Dialog, DialogActions } from "@/components/Dialog";
import { CheckField } from "@/components/Field";
import { Problem } from "@/components/Message";
import type { LiveStatus } from "@/lib/api/client";
import { useStopLive } from "./api";
import styles from "./live.module.css";

/** The red button: put the original settings back on all instances at once, end what runs, and pause the study. */
export function StopButton({ status }: { status: LiveStatus }) {
  const [open, setOpen] = useState(false);
  const [leaveKept, setLeaveKept] = useState(false);
  const stop = useStopLive(status.study);
  const busy = status.instances.filter(({ state }) => state === "running" || state === "kept" || state === "stuck").length;
  const kept = status.kept.some((one) => one.in_force);
  const change = (next: boolean) => {
    setOpen(next);
    setLeaveKept(false);
    stop.reset();
  };
  return (
    <Dialog
      open={open}
      onOpenChange={change}
      title={t`Put the original settings back now?`}
      trigger={
        <Button className={styles.red}>
          <OctagonX />
          {t`Stop and revert …`}
        </Button>
      }
    >
      <p>
        {busy === 0
          ? t`No settings of a trial are known to be in force. The study is paused, so that no trial begins.`
          : plural(busy, {
              one: "The agent puts the settings before the first trial back on # instance. A running trial ends, and the study is paused. This takes a second or two.",
              other: "The agents put the settings before the first trial back on # instances. A running trial ends, and the study is paused. This takes a second or two.",
            })}
      </p>
      {kept ? <CheckField label={t`Leave settings in force that earlier trials have kept`} checked={leaveKept} onChange={(event) => setLeaveKept(event.target.checked)} /> : null}
      {stop.error === null ? null : <Problem error={stop.error} />}
      <DialogActions>
        <Button onClick={() => change(false)}>{t`Cancel`}</Button>
        {/* eslint-disable-next-line jsx-a11y/no-autofocus -- one press of Enter confirms */}
        <Button className={styles.red} autoFocus disabled={stop.isPending} onClick={() => stop.mutate({ reason: "", leaveKept }, { onSuccess: () => change(false) })}>
          {t`Stop and revert`}
        </Button>
      </DialogActions>
    </Dialog>
  );
}
