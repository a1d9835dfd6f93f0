import { plural, t } from "@lingui/core/macro";
import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { useDeferredValue, useState } from "react";
import { stateText } from "@/components/Badge";
import { Button, MoreButton } from "@/components/Button";
import { Conditions, refusalOf } from "@/components/Conditions";
import { SelectField, TextField } from "@/components/Field";
import { Empty, Loading, Problem } from "@/components/Message";
import { Segments } from "@/components/Select";
import { facetsQuery, MOST_COMPARED, PAGE, PAGE_OF_PHONE, studiesQuery, type StudyFilter, type StudySort } from "@/features/studies/api";
import { ManyStudies } from "@/features/studies/ManyStudies";
import { SavedViews } from "@/features/studies/SavedViews";
import { StudyTable } from "@/features/studies/StudyTable";
import { TagStudies } from "@/features/studies/TagStudies";
import type { ListedStudy, StudyFacets, StudyState } from "@/lib/api/client";
import { STUDY_COLUMNS } from "@/lib/columns";
import { formatNumber } from "@/lib/format";
import { useMay } from "@/lib/session";
import { isNarrow, useTitle } from "@/lib/browser";
import { studiesSearch, type StudiesSearch } from "../addresses";
import { FirstSteps } from "../FirstSteps";
import styles from "./pages.module.css";

const route = getRouteApi("/signed-in/studies");

type Show = NonNullable<StudiesSearch["show"]>;
const STATES: Record<Show, StudyState[]> = { all: [], open: ["ACTIVE", "PAUSED"], ended: ["COMPLETED", "ABORTED"], attention: [] };

export function StudiesPage() {
  useTitle(t`Studies`);
  const may = useMay();
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const [chosen, setChosen] = useState<ReadonlyMap<string, ListedStudy>>(new Map());
  const show = search.show ?? "all";
  const sort = search.sort ?? "-created";
  const filter = useDeferredValue(filterOf(search));
  const query = useInfiniteQuery(studiesQuery(filter, isNarrow() ? PAGE_OF_PHONE : PAGE));
  const { data, error, refetch } = query;
  const { data: facets } = useQuery(facetsQuery);
  const studies = data?.pages.flatMap((page) => page.studies) ?? [];
  const total = data?.pages[0]?.total_count ?? 0;

  /** Keep the filter in the address, so that users can share it and go back to it. */
  function look(changes: Partial<StudiesSearch>) {
    void navigate({ search: (before) => clean({ ...before, ...changes }), replace: true });
  }

  return (
    <>
      <div className={styles.head}>
        <h1>{t`Studies`}</h1>
        {may("study.create") ? (
          <Link to="/new" className={styles.primary}>
            {t`New study`}
          </Link>
        ) : null}
      </div>
      <div className={styles.filters}>
        <TextField
          bare
          label={t`Search studies`}
          type="search"
          placeholder={t`Name, component, owner, tag …`}
          value={search.q ?? ""}
          onChange={(event) => look({ q: event.target.value })}
        />
        <Segments
          label={t`Show`}
          value={show}
          onChange={(value) => look({ show: value })}
          options={[
            { value: "all", text: t`All` },
            { value: "open", text: t`Open` },
            { value: "ended", text: t`Ended` },
            { value: "attention", text: facets?.attention ? t`Needs attention (${facets.attention})` : t`Needs attention` },
          ]}
        />
        <Facet label={t`Component`} every={t`All components`} of={facets?.components} value={search.component} onChange={(component) => look({ component })} />
        <Facet
          label={t`Application`}
          every={t`All applications`}
          of={facets?.applications}
          value={search.application}
          onChange={(application) => look({ application })}
        />
        <Facet label={t`Owner`} every={t`All owners`} of={facets?.owners} value={search.owner} onChange={(owner) => look({ owner })} />
        <Facet label={t`State`} every={t`All states`} of={facets?.states} value={search.state} text={(state) => stateText(state as StudyState)} onChange={(state) => look({ state: state === "" ? undefined : (state as StudyState) })} />
        <Facet label={t`Tag`} every={t`All tags`} of={facets?.tags} value={search.tag} onChange={(tag) => look({ tag })} />
        <Conditions
          bare
          where={search.where ?? []}
          columns={STUDY_COLUMNS}
          example="gain > 10"
          error={error}
          matches={data === undefined ? undefined : total}
          onChange={(where) => look({ where })}
        />
        <SavedViews view={addressOf(search)} onOpen={(view) => void navigate({ search: searchOf(view) })} />
      </div>
      {error === null || refusalOf(error) !== null ? null : <Problem error={error} again={() => void refetch()} />}
      {data === undefined ? (
        error === null ? <Loading what={t`studies`} /> : null
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
            <Empty title={show === "attention" ? t`No study needs attention` : t`No matching studies`}>
              <Button onClick={() => void navigate({ search: {} })}>{t`Show all studies`}</Button>
            </Empty>
          ) : (
            <FirstSteps />
          )}
        </div>
      )}
      {studies.length > 0 ? (
        <div className={styles.more}>
          <MoreButton query={query} />
          <span>
            {studies.length === total ? plural(total, { one: "# study", other: "# studies" }) : t`${formatNumber(studies.length)} of ${formatNumber(total)}`}
          </span>
        </div>
      ) : null}
      {chosen.size > 0 ? (
        <div className={styles.bar} role="region" aria-label={t`Selected studies`}>
          <span>{t`${formatNumber(chosen.size)} selected`}</span>
          {chosen.size > 1 && chosen.size <= MOST_COMPARED ? (
            <Link to="/compare" search={{ study: [...chosen.keys()] }} className={styles.primary}>
              {t`Compare`}
            </Link>
          ) : (
            <span className={styles.soft}>{chosen.size === 1 ? t`Select another study to compare.` : t`At most ${MOST_COMPARED} studies can be compared.`}</span>
          )}
          {chosen.size === 1 && may("study.create") ? (
            <Link to="/new" search={{ clone: [...chosen.keys()][0] }}>
              {t`Clone`}
            </Link>
          ) : null}
          {may("study.update") ? <TagStudies studies={[...chosen.values()]} onDone={() => setChosen(new Map())} /> : null}
          <ManyStudies studies={[...chosen.values()]} mayStop={may("study.update")} mayDelete={may("study.delete")} onDone={() => setChosen(new Map())} />
          <Button small kind="quiet" onClick={() => setChosen(new Map())}>
            {t`Clear selection`}
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
  /** The text of a value; by default the value itself. */
  text?: (value: string) => string;
}

/** A filter by one of the existing values; nothing if there are none. */
function Facet({ label, every, of, value, onChange, text = (one) => one }: FacetProps) {
  if (value === undefined && (of === undefined || of.length === 0)) return null;
  const known = of ?? [];
  const missing = value !== undefined && !known.some((one) => one.value === value);
  return (
    <SelectField bare label={label} value={value ?? ""} onChange={(event) => onChange(event.target.value)}>
      <option value="">{every}</option>
      {known.map((one) => (
        <option key={one.value} value={one.value}>
          {text(one.value)} ({formatNumber(one.count)})
        </option>
      ))}
      {missing ? <option value={value}>{text(value)} (0)</option> : null}
    </SelectField>
  );
}

function filterOf(search: StudiesSearch): StudyFilter {
  const show = search.show ?? "all";
  return {
    state: search.state === undefined ? STATES[show] : [search.state],
    sort: search.sort ?? "-created",
    ...(search.q?.trim() ? { search: search.q.trim() } : {}),
    ...(search.component ? { component: search.component } : {}),
    ...(search.application ? { application: search.application } : {}),
    ...(search.owner ? { owner: search.owner } : {}),
    ...(search.tag ? { tag: [search.tag] } : {}),
    ...(search.where ? { where: search.where } : {}),
    ...(show === "attention" ? { attention: true } : {}),
  };
}

function isFiltered(search: StudiesSearch): boolean {
  return Object.keys(clean(search)).some((key) => key !== "sort");
}

/** Return the filter and order as the query of an address. */
function addressOf(search: StudiesSearch): string {
  const { where = [], ...rest } = clean(search);
  return new URLSearchParams([...Object.entries(rest), ...where.map((one) => ["where", one] as [string, string])]).toString();
}

/** Return the filter and order that the query of an address holds. */
function searchOf(view: string): StudiesSearch {
  const found = new URLSearchParams(view);
  return studiesSearch({ ...Object.fromEntries(found), where: found.getAll("where") });
}

/** Return the search without empty values and defaults. */
function clean(search: StudiesSearch): StudiesSearch {
  const kept = Object.entries(search).filter(([key, value]) => value !== undefined && value !== "" && !(key === "show" && value === "all"));
  return Object.fromEntries(kept);
}
