import { t } from "@lingui/core/macro";
import { useRouterState } from "@tanstack/react-router";
import { CircleHelp } from "lucide-react";
import { useEffect, useState } from "react";
import { Button } from "@/components/Button";
import { Popover } from "@/components/Popover";
import styles from "./Shell.module.css";

/** A button, and the key "?", that open the shortcuts and the documentation of this page. */
export default function Help({ onTour }: { onTour: () => void }) {
  const [open, setOpen] = useState(false);
  const route = useRouterState({ select: ({ matches }) => matches.at(-1)?.fullPath ?? "/" });
  useEffect(() => {
    function press(event: KeyboardEvent) {
      const typing = event.target instanceof HTMLElement && event.target.closest("input, textarea, select, [contenteditable]") !== null;
      if (event.key !== "?" || typing || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      setOpen(true);
    }
    document.addEventListener("keydown", press);
    return () => document.removeEventListener("keydown", press);
  }, []);
  return (
    <Popover
      label={t`Help`}
      open={open}
      onOpenChange={setOpen}
      trigger={
        <Button small kind="quiet" aria-label={t`Help`} aria-keyshortcuts="?" title={t`Help`}>
          <CircleHelp />
        </Button>
      }
    >
      <div className={styles.helpPanel}>
        <p>
          <a href={documentation(route)} target="_blank" rel="noreferrer">
            {t`Documentation`}
          </a>{" "}
          {t`of this page`}
        </p>
        <p>
          <a href="/docs/" target="_blank" rel="noreferrer">
            {t`All documentation`}
          </a>
        </p>
        <dl>
          <Shortcut keys="Ctrl K" text={t`Search for a study, page or command`} />
          <Shortcut keys="?" text={t`Open this help`} />
          <Shortcut keys="Esc" text={t`Close a dialog or panel`} />
        </dl>
        <Button
          small
          onClick={() => {
            setOpen(false);
            onTour();
          }}
        >
          {t`Take the tour`}
        </Button>
      </div>
    </Popover>
  );
}

function Shortcut({ keys, text }: { keys: string; text: string }) {
  return (
    <div>
      <dt>
        <kbd className={styles.key}>{keys}</kbd>
      </dt>
      <dd>{text}</dd>
    </div>
  );
}

/** The page of the documentation for each page of the console, by the route. A test checks that the site has each. */
const PAGES: Record<string, string> = {
  "/": "/docs/tutorials/first-study.html",
  "/studies": "/docs/tutorials/first-study.html",
  "/studies/$name": "/docs/explanation/final-check.html",
  "/studies/$name/trials/$number": "/docs/explanation/one-tell.html",
  "/studies/$name/report": "/docs/explanation/final-check.html#the-verdict",
  "/compare": "/docs/how-to/noisy-systems.html",
  "/new": "/docs/reference/study-files.html",
  "/batch-script": "/docs/how-to/sbatch-file.html",
  "/components": "/docs/how-to/write-component.html",
  "/components/$name": "/docs/reference/component-files.html",
  "/write-component": "/docs/reference/component-files.html",
  "/gallery": "/docs/how-to/gallery.html",
  "/agents": "/docs/how-to/many-machines.html",
  "/live": "/docs/how-to/live.html",
  "/matching": "/docs/how-to/matching.html",
  "/matching/records/$id": "/docs/explanation/matching.html",
  "/administration": "/docs/explanation/tenancy.html",
};

/** Return the address of the documentation's page for a route; its first page for any other route. */
function documentation(route: string): string {
  return PAGES[route] ?? "/docs/";
}
