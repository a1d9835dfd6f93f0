import { plural, t } from "@lingui/core/macro";
import { useMemo } from "react";
import { Card } from "@/components/Card";
import { CopyButton } from "@/components/CopyButton";
import { Code } from "@/components/Message";
import type { Study } from "@/lib/api/client";
import styles from "./planning.module.css";
import { fromSpec, write } from "./studyFile";

/** All that a study was told to do, as a study file: what makes the same one anew. */
export default function AsFile({ study: { name, spec, space_version: version } }: { study: Study }) {
  const text = useMemo(() => write(fromSpec(name, spec)), [name, spec]);
  return (
    <Card title={t`Study file`} actions={<CopyButton label={t`Copy`} text={text} />}>
      <div className={styles.stack}>
        <p className={styles.soft}>
          {t`Objectives, parameters, algorithm, policies and budget, with all that was chosen for them. The command line makes the same study of it: ${"trimtab tune FILE"}.`}{" "}
          {version > 1 ? t`The ranges are those of now: they were changed ${plural(version - 1, { one: "once", other: "# times" })}.` : ""}
        </p>
        <Code>{text}</Code>
      </div>
    </Card>
  );
}
