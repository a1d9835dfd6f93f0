import { i18n, type MessageDescriptor } from "@lingui/core";
import { msg, t } from "@lingui/core/macro";
import { useNavigate } from "@tanstack/react-router";
import { useEffect, useState } from "react";
import { Button } from "@/components/Button";
import styles from "./Shell.module.css";

interface Stop {
  to: "/components" | "/agents" | "/new" | "/studies" | "/matching";
  title: MessageDescriptor;
  text: MessageDescriptor;
}

const STOPS: readonly Stop[] = [
  { to: "/components", title: msg`Components`, text: msg`A component is a system that can be tuned: its parameters, and how an agent applies and measures them.` },
  { to: "/agents", title: msg`Agents`, text: msg`An agent runs the trials of studies on a machine or cluster, with the components that are installed there.` },
  { to: "/new", title: msg`New study`, text: msg`A study searches for a better configuration of a component within a budget. Here you choose parameters, objectives and budget.` },
  { to: "/studies", title: msg`Studies`, text: msg`Here you follow all studies. A study ends with a verdict, which says whether the gain is proven.` },
  { to: "/matching", title: msg`Matching`, text: msg`Jobs that resemble a tuned application get its settings from here.` },
];

/** A tour of the console's pages in five steps. */
export default function Tour({ onClose }: { onClose: () => void }) {
  const [place, setPlace] = useState(0);
  const navigate = useNavigate();
  const stop = STOPS[place];
  const to = stop?.to;
  useEffect(() => {
    if (to !== undefined) void navigate({ to });
  }, [navigate, to]);
  if (stop === undefined) return null;
  return (
    <aside className={styles.tour} aria-label={t`Tour`} aria-live="polite">
      <h2>{i18n._(stop.title)}</h2>
      <p>{i18n._(stop.text)}</p>
      <div className={styles.tourButtons}>
        <span>{t`${place + 1} of ${STOPS.length}`}</span>
        <Button small onClick={onClose}>{t`End the tour`}</Button>
        {place > 0 ? <Button small onClick={() => setPlace(place - 1)}>{t`Back`}</Button> : null}
        {place + 1 < STOPS.length ? (
          <Button small kind="primary" onClick={() => setPlace(place + 1)}>
            {t`Next`}
          </Button>
        ) : null}
      </div>
    </aside>
  );
}
