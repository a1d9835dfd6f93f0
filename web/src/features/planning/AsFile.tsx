import { plural, t } from "@lingui/core/macro";
import { useQuery } from "@tanstack/react-query";
import { Card } from "@/components/Card";
import { CopyButton } from "@/components/Button";
import { Code, Loading, Problem } from "@/components/Message";
import type { Study } from "@/lib/api/client";
import { fileQuery } from "./api";
import styles from "./planning.module.css";

/** The study file that describes a study again, as the service writes it. */
export default function AsFile({ study }: { study: Study }) {
  const { space_version: version } = study;
  const { data: text, error, refetch } = useQuery(fileQuery(study));
  return (
    <Card title={t`Study file`} actions={text === undefined ? undefined : <CopyButton label={t`Copy`} text={text} />}>
      <div className={styles.stack}>
        <p className={styles.soft}>
          {t`This file holds the objectives, parameters, algorithm, policies and budget, with all defaults filled in. ${"trimtab tune FILE"} creates the same study from it.`}{" "}
          {version > 1 ? t`It holds the present ranges, which have changed ${plural(version - 1, { one: "once", other: "# times" })}.` : ""}
        </p>
        {text !== undefined ? <Code>{text}</Code> : error === null ? <Loading what={t`the study file`} /> : <Problem error={error} again={() => void refetch()} />}
      </div>
    </Card>
  );
}
