import { t } from "@lingui/core/macro";
import { BatchScript } from "@/features/batch/BatchScript";
import { useTitle } from "@/lib/browser";
import styles from "./pages.module.css";

export function BatchScriptPage() {
  useTitle(t`Tune a batch script`);
  return (
    <>
      <div>
        <h1>{t`Tune a batch script`}</h1>
        <p className={styles.soft}>{t`Find the best values for a script that you submit with sbatch, with jobs of your own and without an agent.`}</p>
      </div>
      <BatchScript />
    </>
  );
}
