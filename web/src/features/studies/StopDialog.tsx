import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import type { ReactNode } from "react";
import { Button } from "@/components/Button";
import { Dialog, DialogActions } from "@/components/Dialog";
import { Problem } from "@/components/Message";
import { useUpdateState } from "./api";

interface Props {
  name: string;
  open: boolean;
  onOpenChange: (open: boolean) => void;
  trigger?: ReactNode;
}

/** Ask for confirmation before a study ends. The text names no number of running trials, since it changes while the user reads. */
export function StopDialog({ name, open, onOpenChange, trigger }: Props) {
  const update = useUpdateState(name);
  function end(state: "COMPLETED" | "ABORTED") {
    update.mutate(state, { onSuccess: () => onOpenChange(false) });
  }
  return (
    <Dialog title={t`Stop ${name}?`} open={open} onOpenChange={onOpenChange} trigger={trigger}>
      <p>{t`The trials and the best configuration are kept. A finished study can continue later, an aborted one cannot.`}</p>
      <p>
        <Trans>
          <b>Finish</b> lets running trials end and counts their results. <b>Abort</b> stops them now.
        </Trans>
      </p>
      {update.error === null ? null : <Problem error={update.error} />}
      <DialogActions>
        <Button onClick={() => onOpenChange(false)}>{t`Cancel`}</Button>
        <Button kind="danger" disabled={update.isPending} onClick={() => end("ABORTED")}>
          {t`Abort`}
        </Button>
        <Button kind="primary" disabled={update.isPending} onClick={() => end("COMPLETED")}>
          {t`Finish`}
        </Button>
      </DialogActions>
    </Dialog>
  );
}
