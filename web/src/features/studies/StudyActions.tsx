import { plural, t } from "@lingui/core/macro";
import { CirclePause, CirclePlay, Copy, FileJson, FileSpreadsheet, Gauge, Printer, SlidersHorizontal, Trash2, Variable } from "lucide-react";
import { lazy, Suspense, useEffect, useState, type ReactNode } from "react";
import { Button } from "@/components/Button";
import { Dialog, DialogActions } from "@/components/Dialog";
import { Menu, MenuItem, MenuLine, MenuLink } from "@/components/Menu";
import { Problem } from "@/components/Message";
import type { Study } from "@/lib/api/client";
import { part } from "@/lib/chunks";
import { useDeleteStudy, useUpdateState } from "./api";
import { BudgetButton, BudgetDialog } from "./BudgetDialog";
import type { Connection } from "./feed";
import { StopDialog } from "./StopDialog";
import styles from "./StudyActions.module.css";

const EditDialog = lazy(() => part(() => import("./EditDialog")));
const RangesDialog = lazy(() => part(() => import("./RangesDialog")));

// The dialogs that the menu opens.
/* eslint-disable lingui/no-unlocalized-strings -- names in the code */
const BUDGET = "budget";
const RANGES = "ranges";
const PARAMETERS = "parameters";
const DELETE = "delete";
/* eslint-enable lingui/no-unlocalized-strings */
type Opened = typeof BUDGET | typeof RANGES | typeof PARAMETERS | typeof DELETE;

interface Props {
  study: Study;
  connection: Connection;
  mayTune: boolean;
  mayCreate: boolean;
  /** Links to the pages that create a copy and print a report, with this text. */
  clone: (text: ReactNode) => ReactNode;
  report: (text: ReactNode) => ReactNode;
  onDeleted: () => void;
}

/** The actions that the state of a study allows: the usual one as a button, and a menu of the others. */
export function StudyActions({ study, connection, mayTune, mayCreate, clone, report, onDeleted }: Props) {
  const [dialog, openDialog] = useState<Opened | null>(null);
  const update = useUpdateState(study.name);
  const { reset } = update;
  // An error from before a reconnection is out of date.
  useEffect(() => {
    if (connection === "live") reset();
  }, [connection, reset]);
  const open = study.state === "ACTIVE" || study.state === "PAUSED";
  const searching = open && study.search_end_reason === "";
  const at = `/api/v1/studies/${encodeURIComponent(study.name)}`;
  const close = () => openDialog(null);
  return (
    <div className={styles.actions}>
      {mayTune && study.state === "ACTIVE" ? (
        <Button disabled={update.isPending} onClick={() => update.mutate("PAUSED")}>
          <CirclePause />
          {t`Pause`}
        </Button>
      ) : null}
      {mayTune && study.state === "PAUSED" ? (
        <Button kind="primary" disabled={update.isPending} onClick={() => update.mutate("ACTIVE")}>
          <CirclePlay />
          {t`Resume`}
        </Button>
      ) : null}
      {mayTune && open ? <StopButton name={study.name} /> : null}
      {mayTune && study.state === "COMPLETED" && !study.exhausted ? <BudgetButton study={study} label={t`Continue`} /> : null}
      <Menu label={t`More actions`}>
        {mayTune && searching ? (
          <>
            <MenuItem icon={<Gauge />} onSelect={() => openDialog(BUDGET)}>{t`Budget`}</MenuItem>
            <MenuItem icon={<SlidersHorizontal />} onSelect={() => openDialog(RANGES)}>{t`Ranges`}</MenuItem>
            <MenuItem icon={<Variable />} onSelect={() => openDialog(PARAMETERS)}>{t`Parameters`}</MenuItem>
            <MenuLine />
          </>
        ) : null}
        {mayCreate ? (
          <MenuLink>
            {clone(
              <>
                <Copy />
                {t`Clone`}
              </>,
            )}
          </MenuLink>
        ) : null}
        <MenuLink>
          {report(
            <>
              <Printer />
              {t`Printable report`}
            </>,
          )}
        </MenuLink>
        <MenuLink>
          <a href={`${at}/trials.csv`} download>
            <FileSpreadsheet />
            {t`Trials as CSV`}
          </a>
        </MenuLink>
        <MenuLink>
          <a href={`${at}/trials.json`} download>
            <FileJson />
            {t`Study and trials as JSON`}
          </a>
        </MenuLink>
        <MenuLink>
          <a href={`${at}/verdict.csv`} download>
            <FileSpreadsheet />
            {t`Verdict as CSV`}
          </a>
        </MenuLink>
        {mayTune && !open ? (
          <>
            <MenuLine />
            <MenuItem danger icon={<Trash2 />} onSelect={() => openDialog(DELETE)}>{t`Delete`}</MenuItem>
          </>
        ) : null}
      </Menu>
      <BudgetDialog study={study} open={dialog === BUDGET} onOpenChange={close} />
      <Suspense>
        {dialog === RANGES ? <RangesDialog study={study} open onOpenChange={close} /> : null}
        {dialog === PARAMETERS ? <EditDialog study={study} open onOpenChange={close} /> : null}
      </Suspense>
      <DeleteDialog study={study} open={dialog === DELETE} onOpenChange={close} onDeleted={onDeleted} />
      {update.error === null ? null : (
        <div className={styles.problem}>
          <Problem error={update.error} />
        </div>
      )}
    </div>
  );
}

function StopButton({ name }: { name: string }) {
  const [shown, show] = useState(false);
  return <StopDialog name={name} open={shown} onOpenChange={show} trigger={<Button kind="danger">{t`Stop`}</Button>} />;
}

function DeleteDialog({ study, open, onOpenChange, onDeleted }: { study: Study; open: boolean; onOpenChange: (open: boolean) => void; onDeleted: () => void }) {
  const remove = useDeleteStudy(study.name, onDeleted);
  return (
    <Dialog title={t`Delete ${study.name}?`} open={open} onOpenChange={onOpenChange}>
      <p>{plural(study.trial_count, { one: "This permanently deletes the study and its # trial.", other: "This permanently deletes the study and its # trials." })}</p>
      {remove.error === null ? null : <Problem error={remove.error} />}
      <DialogActions>
        <Button onClick={() => onOpenChange(false)}>{t`Cancel`}</Button>
        <Button kind="danger" disabled={remove.isPending} onClick={() => remove.mutate()}>
          {t`Delete`}
        </Button>
      </DialogActions>
    </Dialog>
  );
}
