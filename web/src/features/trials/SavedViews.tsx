import { t } from "@lingui/core/macro";
import { X } from "lucide-react";
import { useState } from "react";
import { Button } from "@/components/Button";
import { TextField } from "@/components/Field";
import { Popover } from "@/components/Popover";
import type { Shown } from "./columns";
import styles from "./TrialTable.module.css";

interface Props {
  /** The component or the study whose views are shown. */
  of: string;
  present: Omit<SavedView, "name">;
  onOpen: (view: SavedView) => void;
}

/** A menu with the views that were saved in this browser, and a field that saves the present one. */
export function SavedViews({ of, present, onOpen }: Props) {
  const [views, setViews] = useState(() => savedViews(of));
  const [name, setName] = useState("");
  const [open, setOpen] = useState(false);
  function keep(next: SavedView[]) {
    setViews(next);
    saveViews(of, next);
  }
  return (
    <Popover label={t`Views`} open={open} onOpenChange={setOpen} trigger={<Button small>{t`Views`}</Button>}>
      <form
        className={styles.views}
        onSubmit={(event) => {
          event.preventDefault();
          const wanted = name.trim();
          if (wanted === "") return;
          keep([...views.filter((view) => view.name !== wanted), { ...present, name: wanted }]);
          setName("");
        }}
      >
        {views.map((view) => (
          <div key={view.name} className={styles.view}>
            <Button
              small
              kind="quiet"
              onClick={() => {
                onOpen(view);
                setOpen(false);
              }}
            >
              {view.name}
            </Button>
            <Button small kind="quiet" aria-label={t`Delete the view ${view.name}`} onClick={() => keep(views.filter((one) => one !== view))}>
              <X />
            </Button>
          </div>
        ))}
        <TextField label={t`Name of the present view`} hint={t`A view holds filter, order and columns. It is saved in this browser; the address of the page can be shared.`} value={name} onChange={({ target }) => setName(target.value)} />
        <Button type="submit" small disabled={name.trim() === ""}>
          {t`Save view`}
        </Button>
      </form>
    </Popover>
  );
}

/** A filter, an order and columns of the table of trials, under a name. */
export interface SavedView {
  name: string;
  sort?: string | undefined;
  state?: string | undefined;
  reason?: string | undefined;
  where?: string[] | undefined;
  columns: Shown[];
}

/** Return the views that were saved in this browser for `of`: a component, or a study of a script. */
function savedViews(of: string): SavedView[] {
  try {
    const stored: unknown = JSON.parse(localStorage.getItem(key(of)) ?? "[]");
    if (Array.isArray(stored)) return stored.filter(isView);
  } catch {
    // Without storage, or with unreadable content, there are no views.
  }
  return [];
}

/** Save views in this browser. */
function saveViews(of: string, views: readonly SavedView[]): void {
  try {
    localStorage.setItem(key(of), JSON.stringify(views));
  } catch {
    // Without storage the views last until the page is loaded again.
  }
}

function isView(one: unknown): one is SavedView {
  return typeof one === "object" && one !== null && "name" in one && typeof one.name === "string" && "columns" in one && Array.isArray(one.columns);
}

function key(of: string): string {
  return `trimtab-views:${of}`;
}
