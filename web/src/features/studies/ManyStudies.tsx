import { plural, t } from "@lingui/core/macro";
import { useState, type ReactNode } from "react";
import { Button } from "@/components/Button";
import { Dialog, DialogActions } from "@/components/Dialog";
import { Problem } from "@/components/Message";
import type { ListedStudy } from "@/lib/api/client";
import { saveText } from "@/lib/browser";
import { useManyStudies } from "./api";

interface Props {
  studies: ListedStudy[];
  mayStop: boolean;
  mayDelete: boolean;
  onDone: () => void;
}

/** Stop, delete or export the selected studies. */
export function ManyStudies({ studies, mayStop, mayDelete, onDone }: Props) {
  const open = studies.filter(({ state }) => state === "ACTIVE" || state === "PAUSED");
  const ended = studies.filter((study) => !open.includes(study));
  return (
    <>
      <Button small onClick={() => saveText("studies.json", "application/json", JSON.stringify(studies, null, 2))}>
        {t`Export`}
      </Button>
      {mayStop && open.length > 0 ? (
        <Confirmed
          trigger={t`Stop …`}
          title={plural(open.length, { one: "Stop # study?", other: "Stop # studies?" })}
          studies={open}
          buttons={[
            { to: "ABORTED", text: t`Abort` },
            { to: "COMPLETED", text: t`Finish` },
          ]}
          onDone={onDone}
        >
          <p>{t`Running trials of a finished study end and count. An aborted study stops them now.`}</p>
        </Confirmed>
      ) : null}
      {mayDelete && ended.length > 0 ? (
        <Confirmed
          trigger={t`Delete …`}
          title={plural(ended.length, { one: "Delete # study?", other: "Delete # studies?" })}
          studies={ended}
          buttons={[{ to: "DELETED", text: t`Delete` }]}
          onDone={onDone}
        >
          <p>{t`All their trials are deleted. A deleted study cannot be restored.`}</p>
          {open.length > 0 ? <p>{plural(open.length, { one: "# selected study is open and stays.", other: "# selected studies are open and stay." })}</p> : null}
        </Confirmed>
      ) : null}
    </>
  );
}

interface ConfirmedProps {
  trigger: string;
  title: string;
  studies: ListedStudy[];
  buttons: { to: "COMPLETED" | "ABORTED" | "DELETED"; text: string }[];
  onDone: () => void;
  children: ReactNode;
}

function Confirmed({ trigger, title, studies, buttons, onDone, children }: ConfirmedProps) {
  const [shown, show] = useState(false);
  const change = useManyStudies();
  return (
    <Dialog title={title} open={shown} onOpenChange={show} trigger={<Button small kind="danger">{trigger}</Button>}>
      {children}
      <ul style={{ maxHeight: "12rem", overflow: "auto" }}>
        {studies.map(({ name }) => (
          <li key={name}>{name}</li>
        ))}
      </ul>
      {change.error === null ? null : <Problem error={change.error} />}
      <DialogActions>
        <Button onClick={() => show(false)}>{t`Cancel`}</Button>
        {buttons.map(({ to, text }) => (
          <Button
            key={to}
            kind={to === "COMPLETED" ? "primary" : "danger"}
            disabled={change.isPending}
            onClick={() =>
              change.mutate(
                { studies, to },
                {
                  onSuccess: () => {
                    show(false);
                    onDone();
                  },
                },
              )
            }
          >
            {text}
          </Button>
        ))}
      </DialogActions>
    </Dialog>
  );
}
