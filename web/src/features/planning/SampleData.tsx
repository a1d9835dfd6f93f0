import { t } from "@lingui/core/macro";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { FlaskConical, Trash2 } from "lucide-react";
import { useState } from "react";
import { Button } from "@/components/Button";
import { Dialog, DialogActions } from "@/components/Dialog";
import { Problem } from "@/components/Message";
import { api, unwrap } from "@/lib/api/client";
import { formatList } from "@/lib/format";
import { useMay } from "@/lib/session";
import styles from "./planning.module.css";

/** The tag of studies with sample data. */
// eslint-disable-next-line lingui/no-unlocalized-strings -- a tag
export const SAMPLE = "sample";

function useSampleData() {
  return useQuery({
    // Studies that are created and deleted make it out of date.
    queryKey: ["studies", "sample-data"],
    queryFn: () => unwrap(api.GET("/api/v1/sample-data")),
    refetchInterval: 15_000,
  });
}

/** Buttons that create, open and delete the sample data, which the service measures. */
export function SampleData({ onOpen }: { onOpen: (name: string) => void }) {
  const queries = useQueryClient();
  const { data } = useSampleData();
  const create = useMutation({
    mutationFn: () => unwrap(api.POST("/api/v1/sample-data")),
    onSuccess: ({ studies }) => onOpen(studies[0] ?? SAMPLE),
    onSettled: () => queries.invalidateQueries({ queryKey: ["studies"] }),
  });
  if (data === undefined) return null;
  const [first] = data.studies;
  return (
    <div className={styles.buttons}>
      {first === undefined ? (
        <Button disabled={create.isPending} onClick={() => create.mutate()}>
          <FlaskConical />
          {t`Create sample data`}
        </Button>
      ) : (
        <>
          <Button onClick={() => onOpen(first)}>
            <FlaskConical />
            {t`Open the sample data`}
          </Button>
          <DeleteSampleData studies={data.studies} />
        </>
      )}
      {create.error === null ? null : <Problem error={create.error} />}
    </div>
  );
}

/** On the page of a study with sample data: a note of where it comes from, and a button that deletes it. */
export function SampleNote({ study, onDeleted }: { study: string; onDeleted: () => void }) {
  const { data } = useSampleData();
  const may = useMay();
  if (data?.studies.includes(study) !== true) return null;
  return (
    <div className={styles.sample} role="note">
      <span>{t`Sample data: the service measures a simulated web server, with a formula and some noise. You can close this page meanwhile.`}</span>
      {may("study.delete") ? <DeleteSampleData studies={data.studies} onDeleted={onDeleted} /> : null}
    </div>
  );
}

function DeleteSampleData({ studies, onDeleted }: { studies: string[]; onDeleted?: () => void }) {
  const [open, setOpen] = useState(false);
  const queries = useQueryClient();
  const remove = useMutation({
    mutationFn: () => unwrap(api.DELETE("/api/v1/sample-data")),
    onSuccess: () => {
      setOpen(false);
      onDeleted?.();
      return queries.invalidateQueries({ queryKey: ["studies"] });
    },
  });
  return (
    <Dialog
      title={t`Delete the sample data?`}
      open={open}
      onOpenChange={setOpen}
      trigger={
        <Button kind="quiet">
          <Trash2 />
          {t`Delete sample data`}
        </Button>
      }
    >
      <p>{t`This permanently deletes the studies ${formatList(studies, "conjunction")} and no other study.`}</p>
      {remove.error === null ? null : <Problem error={remove.error} />}
      <DialogActions>
        <Button onClick={() => setOpen(false)}>{t`Cancel`}</Button>
        <Button kind="danger" disabled={remove.isPending} onClick={() => remove.mutate()}>
          {t`Delete`}
        </Button>
      </DialogActions>
    </Dialog>
  );
}
