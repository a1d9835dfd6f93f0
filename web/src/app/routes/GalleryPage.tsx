import { t } from "@lingui/core/macro";
import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { TextField } from "@/components/Field";
import { Empty, Loading, Problem } from "@/components/Message";
import { componentsQuery } from "@/features/components/api";
import { agentsQuery } from "@/features/fleet/api";
import { InstallButton } from "@/features/fleet/Installable";
import { galleryQuery, inLanguage } from "@/features/gallery/api";
import { keyOf } from "@/features/gallery/entries";
import { GalleryList } from "@/features/gallery/GalleryList";
import { useTitle } from "@/lib/browser";
import { useMay } from "@/lib/session";
import { contains } from "@/lib/words";
import styles from "./pages.module.css";

const route = getRouteApi("/signed-in/gallery");

/** Components that ship with the agent, by what people run. */
export function GalleryPage() {
  useTitle(t`What do you run?`);
  const may = useMay();
  const { data, error, refetch } = useQuery(galleryQuery);
  const { data: offered } = useQuery(componentsQuery);
  const { data: agents } = useQuery(agentsQuery);
  const { q = "" } = route.useSearch();
  const navigate = route.useNavigate();
  const entries = data?.entries.filter((one) => contains(q, [inLanguage(one.runs), one.component, ...one.packages.map(({ name }) => name)])) ?? [];

  function offering(component: string): string[] {
    const versions = offered?.components.find(({ name }) => name === component)?.versions ?? [];
    return [...new Set(versions.flatMap(({ agents }) => agents.filter(({ online }) => online).map(({ name }) => name)))];
  }
  return (
    <>
      <h1>{t`What do you run?`}</h1>
      {data === undefined ? null : (
        <p className={styles.soft}>
          {t`Components for these systems ship with the agent. The gains were measured on a machine with ${inLanguage(data.machine)}. Another machine or another load has another gain.`}
        </p>
      )}
      <div className={styles.filters}>
        <TextField
          bare
          label={t`Search systems`}
          type="search"
          placeholder={t`System, component, package …`}
          value={q}
          onChange={(event) => void navigate({ search: { q: event.target.value || undefined }, replace: true })}
        />
      </div>
      {error === null ? null : <Problem error={error} again={() => void refetch()} />}
      {data === undefined ? (
        error === null ? <Loading what={t`systems`} /> : null
      ) : entries.length > 0 ? (
        <GalleryList
          entries={entries}
          offering={offering}
          component={(name) => (
            <Link to="/components/$name" params={{ name }}>
              {name}
            </Link>
          )}
          install={(component) => (may("agent.enrol") ? <InstallButton agents={agents?.agents ?? []} component={component} /> : null)}
          start={(entry) =>
            may("study.create") ? (
              <Link to="/new" search={{ gallery: keyOf(entry), step: "review" }} className={styles.primary} aria-label={t`Start the study: ${inLanguage(entry.runs)}`}>
                {t`Start the study`}
              </Link>
            ) : null
          }
        />
      ) : (
        <div className={styles.panel}>
          <Empty title={t`No matching systems`}>
            <Link to="/write-component">{t`Write a component`}</Link>
          </Empty>
        </div>
      )}
    </>
  );
}
