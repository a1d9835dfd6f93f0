import { t } from "@lingui/core/macro";
import { useRouterState } from "@tanstack/react-router";
import { useEffect, useState } from "react";
import { Button } from "@/components/Button";
import { Popover } from "@/components/Popover";
import { documentation } from "./documentation";
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
          ?
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
