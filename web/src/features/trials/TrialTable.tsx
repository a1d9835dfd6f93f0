import { plural, t } from "@lingui/core/macro";
import { useQuery } from "@tanstack/react-query";
import { ArrowDown, ArrowUp, X } from "lucide-react";
import { Fragment, useId, useMemo, useState, type ReactNode } from "react";
import { stateText } from "@/components/Badge";
import { Button } from "@/components/Button";
import { Card } from "@/components/Card";
import { Conditions, refusalOf } from "@/components/Conditions";
import { Loading, Problem } from "@/components/Message";
import type { Configuration, Study, Trial, TrialState } from "@/lib/api/client";
import { useThrottled } from "@/lib/clock";
import { formatNumber } from "@/lib/format";
import { unitsOf, type Units } from "@/lib/space";
import { rowsQuery } from "./api";
import { ColumnChooser, titleOf } from "./ColumnChooser";
import { columnsOf, rememberColumns, shownColumns, type Shown } from "./columns";
import { conditionOf, conditionText, filterable, nextSort, orderOf, type Column, type Filter, type Order } from "./tableQuery";
import { Limits } from "./Limits";
import { SavedViews } from "./SavedViews";
import { SelectedTrials } from "./SelectedTrials";
import { TrialRow } from "./TrialRow";
import styles from "./TrialTable.module.css";

const PAGE = 50;
const STATES: readonly TrialState[] = ["REQUESTED", "ACTIVE", "COMPLETED", "PRUNED", "INFEASIBLE", "FAILED"];
const NEWEST = "-number";

/** The filter, order and page of the table, which the address of the page holds. */
export interface TableSearch {
  sort?: string | undefined;
  state?: string | undefined;
  reason?: string | undefined;
  where?: string[] | undefined;
  page?: number | undefined;
}

interface Props {
  study: Study;
  /** The known trials: all, or a sample. They are newer than the rows, which the service sorts and filters. */
  trials: Trial[];
  standard: Configuration | undefined;
  /** Numbers of the trials that measured the best configuration. */
  best: ReadonlySet<number>;
  /** Numbers of the trials with a penalty in place of a measurement. */
  penalties: ReadonlySet<number>;
  opened: number | null;
  onOpen: (trial: number | null) => void;
  search: TableSearch;
  onSearch: (changes: TableSearch) => void;
  mayStop: boolean;
  link: (number: number, text: string) => ReactNode;
}

/** A table of all trials, in pages. A row opens to show the details of its trial. */
export function TrialTable({ study, trials, standard, best, penalties, opened, onOpen, search, onSearch, mayStop, link }: Props) {
  const { spec, name } = study;
  const { sort = NEWEST, reason, page = 1 } = search;
  const state = STATES.find((one) => one === search.state) ?? "";
  const where = useMemo(() => search.where ?? [], [search.where]);
  const filter: Filter = { state, reason: reason ?? null, where };
  const order = orderOf(sort);
  const [chosen, choose] = useState<Shown[]>(() => shownColumns(name, spec));
  const [selected, select] = useState<ReadonlyMap<number, Trial>>(new Map());
  const filterId = useId();

  const asked = useQuery(rowsQuery(name, { order, filter, offset: (page - 1) * PAGE, size: PAGE }, useThrottled(study.revision, 1000)));
  const newer = useMemo(() => new Map(trials.map((trial) => [trial.number, trial])), [trials]);
  const shown = (asked.data?.trials ?? []).map((row) => {
    const known = newer.get(row.number);
    return known !== undefined && known.revision > row.revision ? known : row;
  });
  const isFiltered = state !== "" || reason !== undefined || where.length > 0;
  // Without a filter the total is the study's own count, since the service may already count more trials.
  const rows = isFiltered ? (asked.data?.total_count ?? 0) : study.trial_count;
  const pages = Math.max(1, Math.ceil(rows / PAGE));
  const units = useMemo(() => unitsOf(spec.space.parameters), [spec]);
  const columns = useMemo(() => filterable(columnsOf(spec, trials)), [spec, trials]);

  function change(changes: TableSearch) {
    onSearch({ page: undefined, ...changes });
  }

  function chooseColumns(next: Shown[]) {
    choose(next);
    rememberColumns(name, next);
  }

  function selectTrial(trial: Trial, isSelected: boolean) {
    const next = new Map(selected);
    if (isSelected) next.set(trial.number, trial);
    else next.delete(trial.number);
    select(next);
  }

  const header = (column: Column, text: string, numeric = false) => (
    <Header column={column} order={order} onSort={(by) => change({ sort: nextSort(order, by) === NEWEST ? undefined : nextSort(order, by) })} numeric={numeric}>
      {text}
    </Header>
  );
  const isPageSelected = shown.length > 0 && shown.every(({ number }) => selected.has(number));

  return (
    <Card
      flush
      title={plural(study.trial_count, { one: "# trial", other: "# trials" })}
      actions={
        <>
          {reason === undefined ? null : (
            <Button small title={reason || t`no reason given`} onClick={() => change({ reason: undefined, state: undefined })}>
              {t`Filtered by reason`} <X />
            </Button>
          )}
          <SavedViews
            of={study.spec.execution?.component ?? name}
            present={{ sort: search.sort, state: search.state, reason, where: search.where, columns: chosen }}
            onOpen={({ sort, state, reason, where, columns }) => {
              chooseColumns(columns);
              change({ sort, state, reason, where });
            }}
          />
          <ColumnChooser spec={spec} trials={trials} shown={chosen} onChange={chooseColumns} />
          <label htmlFor={filterId} className="visually-hidden">
            {t`Filter by state`}
          </label>
          <select id={filterId} className={styles.filter} value={state} onChange={({ target }) => change({ state: target.value || undefined, reason: undefined })}>
            <option value="">{t`All states`}</option>
            {STATES.map((one) => (
              <option key={one} value={one}>
                {stateText(one)}
              </option>
            ))}
          </select>
        </>
      }
    >
      <Conditions
        where={where}
        columns={[...columns.keys()]}
        example="threads > 8"
        matches={asked.data?.total_count}
        others={isFiltered}
        error={asked.error}
        read={(text) => conditionOf(text, columns)}
        write={conditionText}
        onChange={(next) => change({ where: next })}
      />
      {asked.error === null || refusalOf(asked.error) !== null ? null : <Problem error={asked.error} again={() => void asked.refetch()} />}
      <Limits spec={spec} trials={trials} where={where} onWhere={(next) => change({ where: next })} />
      {asked.data === undefined ? asked.error === null ? <Loading what={t`trials`} /> : null : rows === 0 ? (
        <p className={styles.none}>{isFiltered ? t`No trial meets the filter.` : t`No trials yet.`}</p>
      ) : (
        <div className={styles.scroll}>
          <table className={styles.table}>
            <thead>
              <tr>
                <th scope="col" className={styles.opener}>
                  <span className="visually-hidden">{t`Details`}</span>
                </th>
                <td className={styles.opener}>
                  <input
                    type="checkbox"
                    aria-label={t`Select all trials of this page`}
                    checked={isPageSelected}
                    onChange={({ target }) => {
                      const rest = [...selected].filter(([number]) => !shown.some((trial) => trial.number === number));
                      select(new Map([...rest, ...(target.checked ? shown.map((trial) => [trial.number, trial] as const) : [])]));
                    }}
                  />
                </td>
                {header("number", "#", true)}
                {header("state", t`State`)}
                {chosen.map((column) => (
                  <Fragment key={column}>{heading(column, units, header)}</Fragment>
                ))}
              </tr>
            </thead>
            <tbody>
              {shown.map((trial) => (
                <TrialRow
                  key={trial.number}
                  study={name}
                  spec={spec}
                  trial={trial}
                  shown={chosen}
                  mayStop={mayStop}
                  link={link}
                  standard={standard}
                  isBest={best.has(trial.number)}
                  isPenalised={penalties.has(trial.number)}
                  columns={chosen.length + 4}
                  open={opened === trial.number}
                  onOpen={onOpen}
                  selected={selected.has(trial.number)}
                  onSelect={(isSelected) => selectTrial(trial, isSelected)}
                />
              ))}
            </tbody>
          </table>
        </div>
      )}
      {pages > 1 ? (
        <nav className={styles.pages} aria-label={t`Pages of trials`}>
          <Button small disabled={page <= 1} onClick={() => onSearch({ page: page > 2 ? page - 1 : undefined })}>
            {t`Previous`}
          </Button>
          <span>{t`${formatNumber((page - 1) * PAGE + 1)}–${formatNumber(Math.min(rows, page * PAGE))} of ${formatNumber(rows)}`}</span>
          {pages > 2 ? <PageField key={page} page={page} pages={pages} onPage={(next) => onSearch({ page: next > 1 ? next : undefined })} /> : null}
          <Button small disabled={page >= pages} onClick={() => onSearch({ page: page + 1 })}>
            {t`Next`}
          </Button>
        </nav>
      ) : null}
      {selected.size === 0 ? null : <SelectedTrials study={name} trials={[...selected.values()].map((trial) => newer.get(trial.number) ?? trial)} mayStop={mayStop} onClear={() => select(new Map())} />}
    </Card>
  );
}

/** A field for the page to go to. */
function PageField({ page, pages, onPage }: { page: number; pages: number; onPage: (page: number) => void }) {
  const [text, setText] = useState(String(page));
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        const wanted = Number(text);
        if (Number.isInteger(wanted) && wanted >= 1) onPage(Math.min(wanted, pages));
      }}
    >
      <label className={styles.page}>
        {t`Page`}
        <input className={styles.filter} inputMode="numeric" size={4} value={text} onChange={({ target }) => setText(target.value)} />
        {t`of ${formatNumber(pages)}`}
      </label>
    </form>
  );
}

function heading(column: Shown, units: Units, header: (column: Column, text: string, numeric?: boolean) => ReactNode): ReactNode {
  if (column === "agent" || column === "duration" || column.startsWith("metric:") || column.startsWith("param:")) {
    return header(column as Column, titleOf(column, units), column === "duration" || column.startsWith("metric:"));
  }
  return <th scope="col">{titleOf(column)}</th>;
}

interface HeaderProps {
  column: Column;
  order: Order;
  numeric: boolean;
  onSort: (column: Column) => void;
  children: string;
}

function Header({ column, order, numeric, onSort, children }: HeaderProps) {
  const active = order.column === column;
  return (
    <th
      scope="col"
      className={numeric ? styles.number : undefined}
      aria-sort={active ? (order.descending ? "descending" : "ascending") : undefined}
    >
      <button type="button" className={styles.sort} onClick={() => onSort(column)}>
        {children}
        <span aria-hidden="true" className={styles.arrow}>
          {active ? order.descending ? <ArrowDown /> : <ArrowUp /> : null}
        </span>
      </button>
    </th>
  );
}
