import { t } from "@lingui/core/macro";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { Button } from "@/components/Button";
import { Card } from "@/components/Card";
import { SelectField, TextField } from "@/components/Field";
import { Loading, Problem } from "@/components/Message";
import { ApiError, type MatchingQuality, type MatchingSettings } from "@/lib/api/client";
import { formatPercent } from "@/lib/format";
import { qualityQuery, settingsQuery, useUpdateSettings } from "./api";
import { draftOf, readDraft, shareOf, type Draft } from "./draft";
import { fieldText } from "./score";
import styles from "./matching.module.css";

interface Props {
  cluster: string;
  onCluster: (cluster: string) => void;
  mayChange: boolean;
}

/** Show the threshold and the weights for the jobs of a cluster, and let administrators change them. */
export function SettingsForm({ cluster, onCluster, mayChange }: Props) {
  const { data, error, refetch, isPlaceholderData } = useQuery(settingsQuery(cluster));
  const quality = useQuery({ ...qualityQuery(cluster), enabled: mayChange });
  return (
    <Card title={t`Threshold and weights`}>
      {data === undefined || isPlaceholderData ? (
        error === null ? <Loading what={t`settings`} /> : <Problem error={error} again={() => void refetch()} />
      ) : (
        <div className={styles.form}>
          <Clusters settings={data} cluster={cluster} onCluster={onCluster} mayChange={mayChange} />
          {/* The key takes over what another person has saved, or another cluster's settings. */}
          <Form key={JSON.stringify([cluster, data])} settings={data} cluster={cluster} mayChange={mayChange} learned={quality.data?.learned ?? null} />
        </div>
      )}
    </Card>
  );
}

interface ClustersProps {
  settings: MatchingSettings;
  cluster: string;
  onCluster: (cluster: string) => void;
  mayChange: boolean;
}

function Clusters({ settings: { clusters, is_own: isOwn }, cluster, onCluster, mayChange }: ClustersProps) {
  const [name, setName] = useState("");
  const named = [...new Set([...clusters, cluster])].filter((one) => one !== "").sort();
  return (
    <>
      <div className={styles.filters}>
        <SelectField label={t`Cluster`} value={cluster} onChange={(event) => onCluster(event.target.value)}>
          <option value="">{t`All clusters without settings of their own`}</option>
          {named.map((one) => (
            <option key={one} value={one}>
              {one}
            </option>
          ))}
        </SelectField>
        {mayChange ? (
          <form
            className={styles.filters}
            onSubmit={(event) => {
              event.preventDefault();
              if (name.trim() !== "") onCluster(name.trim());
              setName("");
            }}
          >
            <TextField label={t`Another cluster`} placeholder={t`name of the cluster`} value={name} onChange={(event) => setName(event.target.value)} />
            <Button type="submit">{t`Open`}</Button>
          </form>
        ) : null}
      </div>
      <p className={styles.note}>
        {isOwn
          ? t`These settings were set by an administrator.`
          : cluster === ""
            ? t`Nothing was changed: these are the default settings of the published method.`
            : t`The cluster has no settings of its own: these are the ones of all other clusters.`}
      </p>
    </>
  );
}

interface FormProps {
  settings: MatchingSettings;
  cluster: string;
  mayChange: boolean;
  learned: MatchingQuality["learned"];
}

function Form({ settings, cluster, mayChange, learned }: FormProps) {
  const [draft, setDraft] = useState<Draft>(() => draftOf(settings));
  const update = useUpdateSettings();
  const { values, faults } = readDraft(draft);
  const refused = update.error instanceof ApiError ? update.error.data.field : undefined;
  const errorAt = (field: "threshold" | "night_from" | "night_until" | "weights" | `weights.${string}`) => faults[field] ?? (refused === field ? update.error?.message : undefined);
  const isShown = typeof refused === "string" && (refused in draft || refused.startsWith("weights."));
  const isChanged = JSON.stringify(draft) !== JSON.stringify(draftOf(settings));
  function change(next: Draft) {
    update.reset();
    setDraft(next);
  }
  return (
    <form
      className={styles.form}
      onSubmit={(event) => {
        event.preventDefault();
        if (values !== null) update.mutate({ cluster, ...values });
      }}
    >
      <div className={styles.grid}>
        <TextField
          label={t`Threshold`}
          hint={t`The least score of a match, from 0 to 1.`}
          inputMode="decimal"
          readOnly={!mayChange}
          value={draft.threshold}
          error={errorAt("threshold")}
          onChange={(event) => change({ ...draft, threshold: event.target.value })}
        />
        <TextField
          label={t`Night from`}
          hint={t`Hour in UTC.`}
          inputMode="numeric"
          readOnly={!mayChange}
          value={draft.night_from}
          error={errorAt("night_from")}
          onChange={(event) => change({ ...draft, night_from: event.target.value })}
        />
        <TextField
          label={t`Night until`}
          hint={t`Hour in UTC.`}
          inputMode="numeric"
          readOnly={!mayChange}
          value={draft.night_until}
          error={errorAt("night_until")}
          onChange={(event) => change({ ...draft, night_until: event.target.value })}
        />
      </div>
      <fieldset className={styles.weights}>
        <legend>{t`Weights. A score divides them by their sum.`}</legend>
        <div className={styles.grid}>
          {Object.entries(draft.weights).map(([field, weight]) => {
            const share = shareOf(draft, field);
            return (
              <TextField
                key={field}
                label={fieldText(field)}
                hint={share === null ? undefined : t`${formatPercent(share, 1)} of the score`}
                inputMode="decimal"
                readOnly={!mayChange}
                value={weight}
                error={errorAt(`weights.${field}`)}
                onChange={(event) => change({ ...draft, weights: { ...draft.weights, [field]: event.target.value } })}
              />
            );
          })}
        </div>
      </fieldset>
      {errorAt("weights") === undefined ? null : <p className={styles.error}>{errorAt("weights")}</p>}
      {update.error === null || isShown ? null : <Problem error={update.error} />}
      {mayChange ? (
        <>
          <div className={styles.buttons}>
            <Button type="submit" kind="primary" disabled={update.isPending || values === null || !isChanged}>
              {t`Save settings`}
            </Button>
            <Button disabled={!isChanged} onClick={() => change(draftOf(settings))}>{t`Undo changes`}</Button>
            <Button onClick={() => change({ ...draft, ...draftOf({ ...settings, threshold: settings.usual_threshold, weights: settings.usual_weights }) })}>{t`Fill in the defaults`}</Button>
            {learned === null ? null : (
              <Button onClick={() => change(draftOf({ ...settings, threshold: learned.threshold, weights: learned.weights }))}>{t`Fill in learned values`}</Button>
            )}
          </div>
          <p className={styles.note}>{t`Settings apply to the next match. Look at the tab Quality before you change a weight.`}</p>
        </>
      ) : (
        <p className={styles.note}>{t`Administrators change these settings.`}</p>
      )}
    </form>
  );
}
