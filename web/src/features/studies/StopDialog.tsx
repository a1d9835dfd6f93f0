import { t } from "@lingui/core/macro";
import { Plural, Trans } from "@lingui/react/macro";
import type { ReactNode } from "react";
import { Button } from "@/components/Button";
import { Dialog, DialogActions } from "@/components/Dialog";
import { Problem } from "@/components/Message";
import type { Study } from "@/lib/api/client";
import { useUpdateState } from "./api";

interface Props {
  study: Pick<Study, "name" | "active_count">;
  open: boolean;
  onOpenChange: (open: boolean) => void;
  trigger?: ReactNode;
}

/** The question before a study is ended for good. */
export function StopDialog({ study, open, onOpenChange, trigger }: Props) {
  const update = useUpdateState(study.name);
  const running = study.active_count;
  function end(state: "COMPLETED" | "ABORTED") {
    update.mutate(state, { onSuccess: () => onOpenChange(false) });
  }
  return (
    <Dialog title={t`Stop ${study.name}?`} open={open} onOpenChange={onOpenChange} trigger={trigger}>
      <p>{t`A stopped study cannot be started again. Its trials and its best configuration stay.`}</p>
      {running > 0 ? (
        <p>
          <Trans>
            <Plural value={running} one="# trial is" other="# trials are" /> being measured. <b>Finish</b> lets <Plural value={running} one="it" other="them" /> end and
            counts the result; <b>Abort</b> ends <Plural value={running} one="it" other="them" /> now.
          </Trans>
        </p>
      ) : null}
      {update.error === null ? null : <Problem error={update.error} />}
      <DialogActions>
        <Button onClick={() => onOpenChange(false)}>{t`Cancel`}</Button>
        {running > 0 ? (
          <Button kind="danger" disabled={update.isPending} onClick={() => end("ABORTED")}>
            {t`Abort`}
          </Button>
        ) : null}
        <Button kind="primary" disabled={update.isPending} onClick={() => end("COMPLETED")}>
          {t`Finish`}
        </Button>
      </DialogActions>
    </Dialog>
  );
}
