import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { Link } from "@tanstack/react-router";
import styles from "@/app/routes/pages.module.css";
import { Code, Empty } from "@/components/Message";
import type { Study } from "@/lib/api/client";

/** Explain what starts the first trial of a study that has none yet. */
export function FirstTrial({ study }: { study: Study }) {
  const { execution } = study.spec;
  return (
    <div className={styles.panel}>
      {execution ? (
        <Empty title={study.requested_count > 0 ? t`Waiting for an agent` : t`No trials yet`}>
          <p>
            {study.requested_count > 0 ? t`The first trials are ready.` : t`The first suggestion is being computed.`}{" "}
            <Trans>
              Trials start when an <Link to="/agents">agent</Link> with the component <b>{execution.component}</b> is online and has a free slot.
            </Trans>
          </p>
        </Empty>
      ) : (
        <Empty title={t`No trials yet`}>
          <p>{t`Your own script measures this study. In Python:`}</p>
          <Code>{`study = client.get_study("${study.name}")
trial = study.ask(1)[0]
study.tell(trial, {${study.spec.objectives.map(({ metric }) => `"${metric}": …`).join(", ")}})`}</Code>
        </Empty>
      )}
    </div>
  );
}

/** Whether the study has started a trial. */
export function hasBegun(study: Study): boolean {
  return study.finished_count + study.active_count > 0;
}
