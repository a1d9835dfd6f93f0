import { plural, t } from "@lingui/core/macro";
import { useState } from "react";
import { Button } from "@/components/Button";
import { Dialog, DialogActions } from "@/components/Dialog";
import { TextField } from "@/components/Field";
import type { ListedStudy } from "@/lib/api/client";
import { useTagStudies } from "./api";

/** A dialog that adds tags to the selected studies or removes tags. */
export function TagStudies({ studies, onDone }: { studies: ListedStudy[]; onDone: () => void }) {
  const [open, setOpen] = useState(false);
  const common = studies[0]?.tags.filter((tag) => studies.every(({ tags }) => tags.includes(tag))) ?? [];
  return (
    <Dialog
      open={open}
      onOpenChange={setOpen}
      title={studies.length === 1 ? t`Tags of ${studies[0]?.name ?? ""}` : plural(studies.length, { one: "Tags of # study", other: "Tags of # studies" })}
      trigger={<Button small>{t`Tags …`}</Button>}
    >
      <Editor
        studies={studies}
        common={common}
        onDone={() => {
          setOpen(false);
          onDone();
        }}
        onCancel={() => setOpen(false)}
      />
    </Dialog>
  );
}

function Editor({ studies, common, onDone, onCancel }: { studies: ListedStudy[]; common: string[]; onDone: () => void; onCancel: () => void }) {
  const [text, setText] = useState(common.join(", "));
  const change = useTagStudies();
  const wanted = tagsOf(text);
  return (
    <form
      style={{ display: "contents" }}
      onSubmit={(event) => {
        event.preventDefault();
        const add = wanted.filter((tag) => !common.includes(tag));
        change.mutate({ studies, add, remove: common.filter((tag) => !wanted.includes(tag)) }, { onSuccess: onDone });
      }}
    >
      <TextField
        label={studies.length === 1 ? t`Tags` : t`Tags that all selected studies have`}
        hint={t`Separate tags with commas.`}
        value={text}
        error={change.error?.message}
        onChange={(event) => setText(event.target.value)}
      />
      <DialogActions>
        <Button onClick={onCancel}>{t`Cancel`}</Button>
        <Button kind="primary" type="submit" disabled={change.isPending}>
          {t`Save`}
        </Button>
      </DialogActions>
    </form>
  );
}

/** Parse tags that are separated by commas, without duplicates. */
export function tagsOf(text: string): string[] {
  return [...new Set(text.split(",").map((tag) => tag.trim()))].filter((tag) => tag !== "");
}
