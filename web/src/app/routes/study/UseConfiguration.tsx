import { t } from "@lingui/core/macro";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { Button, CopyButton } from "@/components/Button";
import { Dialog } from "@/components/Dialog";
import { Code, Loading, Problem } from "@/components/Message";
import { Segments } from "@/components/Select";
import { settingsQuery, type SettingsFormat } from "@/features/studies/api";
import { differenceText } from "@/features/studies/formats";
import type { Configuration, Measured, Study } from "@/lib/api/client";
import { unitsOf } from "@/lib/space";
import styles from "../pages.module.css";

type Format = SettingsFormat | "difference";

/** A button that opens the configuration in the forms in which it can be used elsewhere. */
export function UseConfiguration({ study, best, standard, isPrimary }: { study: Study; best: Measured; standard: Configuration; isPrimary: boolean }) {
  const [shown, show] = useState(false);
  return (
    <Dialog title={t`Use this configuration`} open={shown} onOpenChange={show} trigger={<Button kind={isPrimary ? "primary" : "plain"}>{t`Use this configuration`}</Button>}>
      <Forms study={study} best={best} standard={standard} />
    </Dialog>
  );
}

function Forms({ study, best, standard }: { study: Study; best: Measured; standard: Configuration }) {
  const [format, setFormat] = useState<Format>("command");
  const options: { value: Format; text: string }[] = [
    { value: "command", text: t`Command line` },
    { value: "env", text: t`Environment` },
    { value: "template", text: t`File` },
    { value: "yaml", text: "YAML" },
    { value: "json", text: "JSON" },
    { value: "difference", text: t`Difference` },
  ];
  return (
    <>
      <Segments label={t`Form`} value={format} onChange={setFormat} options={options} />
      {format === "difference" ? (
        <Text text={differenceText(best.params, standard, unitsOf(study.spec.space.parameters))} nothing={t`The configuration is the default.`} />
      ) : (
        <Rendered study={study} number={best.numbers.at(-1) ?? 0} format={format} />
      )}
    </>
  );
}

/** The settings as the service renders them for each of its clients. */
function Rendered({ study, number, format }: { study: Study; number: number; format: SettingsFormat }) {
  const { data: found, error } = useQuery(settingsQuery(study.name, format, number, study.revision));
  if (error !== null) return <Problem error={error} />;
  if (found === undefined) return <Loading what={t`the settings`} />;
  const several = found.files.length > 1;
  const isRun = format === "command" || format === "env";
  return (
    <>
      {several ? (
        found.files.map(({ name, text }) => (
          <section key={name} aria-label={name}>
            <p className={styles.note}>{name}</p>
            <Text text={text} nothing={t`The file is empty.`} />
          </section>
        ))
      ) : (
        // A command that ends with a line break would run as soon as it is pasted.
        <Text text={format === "command" ? found.text.trimEnd() : found.text} nothing={t`The component sets no environment variables.`} />
      )}
      {isRun && !found.by_component ? (
        <p className={styles.note}>{t`The study does not know how values reach the measured program. Each parameter is written by its name.`}</p>
      ) : (
        found.notes.map((note) => (
          <p key={note} className={styles.note}>
            {note}
          </p>
        ))
      )}
    </>
  );
}

function Text({ text, nothing }: { text: string; nothing: string }) {
  if (text === "") return <p className={styles.note}>{nothing}</p>;
  return (
    <>
      <Code>{text}</Code>
      <CopyButton key={text} label={t`Copy`} text={text} />
    </>
  );
}
