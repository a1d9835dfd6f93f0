import { t } from "@lingui/core/macro";
import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link, useBlocker } from "@tanstack/react-router";
import { useRef } from "react";
import { Empty, Loading, Problem } from "@/components/Message";
import { componentQuery, fileQuery } from "@/features/components/api";
import { WriteComponent } from "@/features/components/WriteComponent";
import { useMay } from "@/lib/session";
import { useTitle } from "@/lib/browser";
import styles from "./pages.module.css";

const route = getRouteApi("/signed-in/write-component");

// eslint-disable-next-line lingui/no-unlocalized-strings -- a file
const FIRST = `name: my-component
description: One sentence about the tuned system.
parameters:
  threads: {type: int, min: 1, max: 64, log: true, default: 8, env: OMP_NUM_THREADS}
  mode: {type: categorical, values: [fast, safe], default: safe, flag: "--mode={value}"}
applications:
  small:
    command: [my-program, --size, "1000"]
    timeout: 600
metrics:
  seconds: wall_time
  rate: {type: regex, pattern: 'rate: (\\S+)'}
`;

/** A new component, or a new version of one. */
export function WriteComponentPage() {
  const { name, version } = route.useSearch();
  const may = useMay();
  useTitle(name === undefined ? t`New component` : t`New version of ${name}`);
  return (
    <>
      <div className={styles.head}>
        <div>
          <h1>{name === undefined ? t`New component` : t`New version of ${name}`}</h1>
          <p className={styles.soft}>{t`A component describes what is tuned: its parameters, how their values reach it, what is run, and how its metrics are read.`}</p>
        </div>
      </div>
      {!may("component.write") ? (
        <Empty title={t`Only members can write components`}>
          <Link to="/components">{t`Go to components`}</Link>
        </Empty>
      ) : name === undefined ? (
        <Editor name={null} initial={FIRST} after={0} />
      ) : (
        <Version name={name} version={version} />
      )}
    </>
  );
}

function Version({ name, version }: { name: string; version: number | undefined }) {
  const component = useQuery(componentQuery(name));
  const newest = component.data?.files[0]?.number;
  const file = useQuery({ ...fileQuery(name, version ?? newest ?? 0), enabled: newest !== undefined });
  const error = component.error ?? file.error;
  if (error !== null) return <Problem error={error} />;
  if (component.data === undefined) return <Loading what={name} />;
  if (newest === undefined) return <Editor name={name} initial={FIRST.replace("my-component", name)} after={0} />;
  if (file.data === undefined) return <Loading what={name} />;
  return <Editor key={`${name} ${file.data.number}`} name={name} initial={file.data.text} after={newest} />;
}

function Editor(props: { name: string | null; initial: string; after: number }) {
  const navigate = route.useNavigate();
  const unsaved = useRef(false);
  useUnsaved(() => unsaved.current);
  return (
    <WriteComponent
      {...props}
      onChange={(value) => (unsaved.current = value)}
      onSaved={(name) => {
        unsaved.current = false;
        void navigate({ to: "/components/$name", params: { name } });
      }}
    />
  );
}

/** Ask for confirmation before the user leaves a page with unsaved changes. */
export function useUnsaved(isUnsaved: () => boolean) {
  useBlocker({
    shouldBlockFn: () => isUnsaved() && !window.confirm(t`Leave this page? Your changes will be lost.`),
    enableBeforeUnload: isUnsaved,
  });
}
