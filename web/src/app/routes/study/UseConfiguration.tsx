import { t } from "@lingui/core/macro";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { Button, CopyButton } from "@/components/Button";
import { Dialog } from "@/components/Dialog";
import { Code, Loading, Problem } from "@/components/Message";
import { Segments } from "@/components/Select";
import { commandText, differenceText, exportText, optionText, variableText, yamlText } from "@/features/studies/formats";
import { trialQuery } from "@/features/trials/api";
import type { Configuration, Measured, Study } from "@/lib/api/client";
import { unitsOf } from "@/lib/space";
import styles from "../pages.module.css";

type Format = "command" | "environment" | "yaml" | "json" | "difference";

/** A button that opens the configuration in the forms in which it can be used elsewhere. */
export function UseConfiguration({ study, best, standard }: { study: Study; best: Measured; standard: Configuration }) {
  const [shown, show] = useState(false);
  return (
    <Dialog title={t`Use this configuration`} open={shown} onOpenChange={show} trigger={<Button kind="primary" small>{t`Use this configuration`}</Button>}>
      <Forms study={study} best={best} standard={standard} />
    </Dialog>
  );
}

function Forms({ study, best, standard }: { study: Study; best: Measured; standard: Configuration }) {
  const [format, setFormat] = useState<Format>("command");
  const runs = study.spec.execution !== null && study.spec.execution !== undefined;
  const number = best.numbers.at(-1) ?? 0;
  const asked = useQuery({ ...trialQuery(study.name, number, study.revision), enabled: runs && number > 0 });
  const lease = asked.data?.leases.findLast(({ invocation }) => invocation !== null);
  const invocation = lease?.invocation ?? null;
  const isRun = format === "command" || format === "environment";
  const texts: Record<Format, string> = {
    command: invocation === null ? optionText(best.params) : commandText(invocation),
    environment: invocation === null ? variableText(best.params) : exportText(invocation),
    yaml: yamlText(best.params),
    json: `${JSON.stringify(best.params, null, 2)}\n`,
    difference: differenceText(best.params, standard, unitsOf(study.spec.space.parameters)),
  };
  const text = texts[format];
  return (
    <>
      <Segments
        label={t`Form`}
        value={format}
        onChange={setFormat}
        options={[
          { value: "command", text: t`Command line` },
          { value: "environment", text: t`Environment` },
          { value: "yaml", text: "YAML" },
          { value: "json", text: "JSON" },
          { value: "difference", text: t`Difference` },
        ]}
      />
      {asked.error !== null && isRun ? <Problem error={asked.error} /> : null}
      {asked.isLoading && isRun ? (
        <Loading what={t`the command line`} />
      ) : text === "" ? (
        <p className={styles.note}>{format === "difference" ? t`The configuration is the default.` : t`The component sets no environment variables.`}</p>
      ) : (
        <Code>{text}</Code>
      )}
      {isRun ? (
        <p className={styles.note}>
          {invocation === null
            ? t`The study does not know the command line of the measured program. Each parameter is written by its name.`
            : t`As ${lease?.agent ?? ""} has run trial ${number}, in the folder ${invocation.folder}. Hidden secrets are shown as ***.`}
        </p>
      ) : null}
      <CopyButton key={text} label={t`Copy`} text={text} />
    </>
  );
}
