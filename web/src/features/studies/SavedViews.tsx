import { t } from "@lingui/core/macro";
import { useState } from "react";
import { Button } from "@/components/Button";
import { TextField } from "@/components/Field";
import { Popover } from "@/components/Popover";

interface Props {
  /** The present filter and order, as the query of an address. */
  view: string;
  onOpen: (view: string) => void;
}

/** The filters that the user has saved in this browser. */
export function SavedViews({ view, onOpen }: Props) {
  const [views, setViews] = useState(readViews);
  const [open, setOpen] = useState(false);
  const [name, setName] = useState("");
  function keep(next: Record<string, string>) {
    setViews(next);
    writeViews(next);
  }
  return (
    <Popover label={t`Saved views`} align="end" open={open} onOpenChange={setOpen} trigger={<Button small>{t`Views`}</Button>}>
      <div style={{ display: "grid", gap: "0.6rem" }}>
        {Object.keys(views).length === 0 ? <p>{t`A view is a filter and an order of this list, saved in this browser.`}</p> : null}
        <ul>
          {Object.entries(views).map(([title, saved]) => (
            <li key={title} style={{ display: "flex", justifyContent: "space-between", gap: "0.6rem" }}>
              <Button
                small
                kind="quiet"
                aria-current={saved === view}
                onClick={() => {
                  setOpen(false);
                  onOpen(saved);
                }}
              >
                {title}
              </Button>
              <Button small kind="quiet" aria-label={t`Delete the view ${title}`} onClick={() => keep(Object.fromEntries(Object.entries(views).filter(([other]) => other !== title)))}>
                ×
              </Button>
            </li>
          ))}
        </ul>
        {view === "" ? null : (
          <form
            style={{ display: "flex", alignItems: "end", gap: "0.5rem" }}
            onSubmit={(event) => {
              event.preventDefault();
              if (name.trim() === "") return;
              keep({ ...views, [name.trim()]: view });
              setName("");
            }}
          >
            <TextField label={t`Name of this view`} value={name} maxLength={40} onChange={(event) => setName(event.target.value)} />
            <Button small type="submit" disabled={name.trim() === ""}>
              {t`Save`}
            </Button>
          </form>
        )}
      </div>
    </Popover>
  );
}

const KEY = "trimtab-study-views";

/** Return the saved views of the list of studies, by their names. Without storage, or if it holds anything else: none. */
function readViews(): Record<string, string> {
  try {
    const stored: unknown = JSON.parse(localStorage.getItem(KEY) ?? "{}");
    if (typeof stored !== "object" || stored === null) return {};
    return Object.fromEntries(Object.entries(stored).filter((entry): entry is [string, string] => typeof entry[1] === "string"));
  } catch {
    return {};
  }
}

/** Save the views. Without storage they last until the page is left. */
function writeViews(views: Record<string, string>): void {
  try {
    localStorage.setItem(KEY, JSON.stringify(views));
  } catch {
    return;
  }
}
