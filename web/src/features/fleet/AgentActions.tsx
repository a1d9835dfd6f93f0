import { t } from "@lingui/core/macro";
import { useState } from "react";
import { Button } from "@/components/Button";
import { Dialog, DialogActions } from "@/components/Dialog";
import { Problem } from "@/components/Message";
import type { Agent } from "@/lib/api/client";
import { useDrain, useForget, useRevoke } from "./api";
import styles from "./AgentList.module.css";

/** The actions of an administrator on an agent. */
export function AgentActions({ agent }: { agent: Agent }) {
  const drain = useDrain(agent.agent_id);
  return (
    <div className={styles.actions}>
      <Button small disabled={drain.isPending} onClick={() => drain.mutate(!agent.draining)}>
        {agent.draining ? t`Accept trials` : t`Drain`}
      </Button>
      <Revoke agent={agent} />
      {agent.online ? null : <Forget agent={agent} />}
      {drain.error === null ? null : <Problem error={drain.error} />}
    </div>
  );
}

function Revoke({ agent }: { agent: Agent }) {
  const [open, setOpen] = useState(false);
  const revoke = useRevoke(agent.agent_id);
  return (
    <Dialog
      open={open}
      onOpenChange={setOpen}
      title={t`Revoke ${agent.name}?`}
      trigger={
        <Button small kind="danger">
          {t`Revoke …`}
        </Button>
      }
    >
      <p>
        {t`The agent’s credential becomes invalid within two seconds. The agent stops, and its trials are retried on other agents. It can return only with a new enrolment.`}
      </p>
      {revoke.error === null ? null : <Problem error={revoke.error} />}
      <DialogActions>
        <Button onClick={() => setOpen(false)}>{t`Cancel`}</Button>
        <Button kind="danger" disabled={revoke.isPending} onClick={() => revoke.mutate(undefined, { onSuccess: () => setOpen(false) })}>
          {t`Revoke`}
        </Button>
      </DialogActions>
    </Dialog>
  );
}

function Forget({ agent }: { agent: Agent }) {
  const forget = useForget(agent.agent_id);
  return (
    <>
      <Button small disabled={forget.isPending} onClick={() => forget.mutate(undefined)}>
        {t`Remove from the list`}
      </Button>
      {forget.error === null ? null : <Problem error={forget.error} />}
    </>
  );
}
