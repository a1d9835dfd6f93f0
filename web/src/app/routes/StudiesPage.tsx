import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useDeferredValue, useState } from "react";
import { Button } from "@/components/Button";
import { SelectField, TextField } from "@/components/Field";
import { Code, Empty, Loading, Problem } from "@/components/Message";
import { Segments } from "@/components/Segments";
import { facetsQuery, studiesQuery, type StudyFilter, type StudySort } from "@/features/studies/api";
import { StudyTable } from "@/features/studies/StudyTable";
import { TagStudies } from "@/features/studies/TagStudies";
import type { ListedStudy, StudyFacets, StudyState } from "@/lib/api/client";
import { formatNumber } from "@/lib/format";
import { useMay } from "@/lib/session";
import { useTitle } from "@/lib/title";
import { studiesRoute, type StudiesSearch } from "../router";
import styles from "./pages.module.css";

type Show = NonNullable<StudiesSearch["show"]>;
const STATES: Record<Show, StudyState[]> = { all: [], open: ["ACTIVE", "PAUSED"], ended: ["COMPLETED", "ABORTED"], attention: [] };
const MOST_COMPARED = 10;

export function StudiesPage() {
  useTitle("Studies");
  const may = useMay();
  const search = studiesRoute.useSearch();
  const navigate = studiesRoute.useNavigate();
  const [chosen, setChosen] = useState<ReadonlyMap<string, ListedStudy>>(new Map());
  const show = search.show ?? "all";
  const sort = search.sort ?? "-created";
  const filter = useDeferredValue(filterOf(search));
  const { data, error, refetch, hasNextPage, fetchNextPage, isFetchingNextPage } = useInfiniteQuery(studiesQuery(filter));
  const { data: facets } = useQuery(facetsQuery);
  const studies = data?.pages.flatMap((page) => page.studies) ?? [];
  const total = data?.pages[0]?.total_count ?? 0;

  /** What is looked for stands in the address, so that it can be sent to others and gone back to. */
  function look(changes: Partial<StudiesSearch>) {
    void navigate({ search: (before) => clean({ ...before, ...changes }), replace: true });
  }

  return (
    <>
      <div className={styles.head}>
        <h1>Studies</h1>
        {may("study.create") ? (
          <Link to="/new" className={styles.primary}>
            New study
          </Link>
        ) : null}
      </div>
      <div className={styles.filters}>
        <TextField
          bare
          label="Search studies"
          type="search"
          placeholder="Name, component, owner, tag …"
          value={search.q ?? ""}
          onChange={(event) => look({ q: event.target.value })}
        />
        <Segments
          label="Show"
          value={show}
          onChange={(value) => look({ show: value })}
          options={[
            { value: "all", text: "All" },
            { value: "open", text: "Open" },
            { value: "ended", text: "Ended" },
            { value: "attention", text: facets?.attention ? `Needs attention (${facets.attention})` : "Needs attention" },
          ]}
        />
        <Facet label="Component" every="All components" of={facets?.components} value={search.component} onChange={(component) => look({ component })} />
        <Facet
          label="Application"
          every="All applications"
          of={facets?.applications}
          value={search.application}
          onChange={(application) => look({ application })}
        />
        <Facet label="Owner" every="All owners" of={facets?.owners} value={search.owner} onChange={(owner) => look({ owner })} />
        <Facet label="Tag" every="All tags" of={facets?.tags} value={search.tag} onChange={(tag) => look({ tag })} />
      </div>
      {error === null ? null : <Problem error={error} again={() => void refetch()} />}
      {data === undefined ? (
        error === null ? <Loading what="studies" /> : null
      ) : (
        <div className={styles.panel}>
          {studies.length > 0 ? (
            <StudyTable
              studies={studies}
              sort={sort}
              onSort={(value) => look({ sort: value as StudySort })}
              chosen={new Set(chosen.keys())}
              onChoose={(name, on) => {
                const next = new Map(chosen);
                const study = studies.find((one) => one.name === name);
                if (on && study !== undefined) next.set(name, study);
                else next.delete(name);
                setChosen(next);
              }}
              link={(name) => (
                <Link to="/studies/$name" params={{ name }}>
                  {name}
                </Link>
              )}
            />
          ) : isFiltered(search) ? (
            <Empty title={show === "attention" ? "Nothing needs attention" : "No study matches"}>
              <Button onClick={() => void navigate({ search: {} })}>Show all studies</Button>
            </Empty>
          ) : (
            <FirstStudy create={may("study.create")} />
          )}
        </div>
      )}
      {studies.length > 0 ? (
        <div className={styles.more}>
          {hasNextPage ? (
            <Button disabled={isFetchingNextPage} onClick={() => void fetchNextPage()}>
              {isFetchingNextPage ? "Loading …" : "Show more"}
            </Button>
          ) : null}
          <span>
            {studies.length === total ? `${formatNumber(total)} ${total === 1 ? "study" : "studies"}` : `${studies.length} of ${formatNumber(total)}`}
          </span>
        </div>
      ) : null}
      {chosen.size > 0 ? (
        <div className={styles.bar} role="region" aria-label="Chosen studies">
          <span>{chosen.size} chosen</span>
          {chosen.size > 1 && chosen.size <= MOST_COMPARED ? (
            <Link to="/compare" search={{ study: [...chosen.keys()] }} className={styles.primary}>
              Compare
            </Link>
          ) : (
            <span className={styles.soft}>{chosen.size === 1 ? "Choose another to compare." : `At most ${MOST_COMPARED} are compared.`}</span>
          )}
          {chosen.size === 1 && may("study.create") ? (
            <Link to="/new" search={{ clone: [...chosen.keys()][0] }}>
              New one like it
            </Link>
          ) : null}
          {may("study.update") ? <TagStudies studies={[...chosen.values()]} onDone={() => setChosen(new Map())} /> : null}
          <Button small kind="quiet" onClick={() => setChosen(new Map())}>
            Clear
          </Button>
        </div>
      ) : null}
    </>
  );
}

interface FacetProps {
  label: string;
  every: string;
  of: StudyFacets["tags"] | undefined;
  value: string | undefined;
  onChange: (value: string) => void;
}

/** A filter by one of the values that there are; without any there is nothing to choose. */
function Facet({ label, every, of, value, onChange }: FacetProps) {
  if (value === undefined && (of === undefined || of.length === 0)) return null;
  const known = of ?? [];
  const missing = value !== undefined && !known.some((one) => one.value === value);
  return (
    <SelectField bare label={label} value={value ?? ""} onChange={(event) => onChange(event.target.value)}>
      <option value="">{every}</option>
      {known.map((one) => (
        <option key={one.value} value={one.value}>
          {one.value} ({one.count})
        </option>
      ))}
      {missing ? <option value={value}>{value} (0)</option> : null}
    </SelectField>
  );
}

function filterOf(search: StudiesSearch): StudyFilter {
  const show = search.show ?? "all";
  return {
    state: STATES[show],
    sort: search.sort ?? "-created",
    ...(search.q?.trim() ? { search: search.q.trim() } : {}),
    ...(search.component ? { component: search.component } : {}),
    ...(search.application ? { application: search.application } : {}),
    ...(search.owner ? { owner: search.owner } : {}),
    ...(search.tag ? { tag: [search.tag] } : {}),
    ...(show === "attention" ? { attention: true } : {}),
  };
}

function isFiltered(search: StudiesSearch): boolean {
  return Object.keys(clean(search)).some((key) => key !== "sort");
}

/** Without what says nothing. */
function clean(search: StudiesSearch): StudiesSearch {
  const kept = Object.entries(search).filter(([key, value]) => value !== undefined && value !== "" && !(key === "show" && value === "all"));
  return Object.fromEntries(kept);
}

function FirstStudy({ create }: { create: boolean }) {
  return (
    <Empty title="No studies yet">
      <p>
        See a real one first: <code>make demo</code> tunes a compiler&rsquo;s flags on this machine and shows up here.
      </p>
      {create ? (
        <p>
          Tune a component that an <Link to="/agents">agent</Link> offers: <Link to="/new">new study</Link>.
        </p>
      ) : null}
      <p>Or tune something of your own, from Python:</p>
      <Code>{`import trimtab

client = trimtab.Client("${location.hostname}:8471", token="…")
study = client.create_study(
    "my-study",
    space=[trimtab.Float("x", 1e-3, 10, log=True), trimtab.Int("n", 1, 16)],
    objectives=[trimtab.Minimize("seconds")],
)
study.optimize(measure, n_trials=50)   # measure(params) -> seconds`}</Code>
    </Empty>
  );
}
