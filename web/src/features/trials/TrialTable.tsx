import { plural, t } from "@lingui/core/macro";
import { useQuery } from "@tanstack/react-query";
import { Fragment, useId, useMemo, useState, type ReactNode } from "react";
import { stateText } from "@/components/Badge";
import { Button } from "@/components/Button";
import { Card } from "@/components/Card";
import { Problem } from "@/components/Message";
import type { Configuration, StudySpec, Trial, TrialState } from "@/lib/api/client";
import { useThrottled } from "@/lib/clock";
import { formatNumber } from "@/lib/format";
import { rowsQuery } from "./api";
import { ColumnChooser } from "./ColumnChooser";
import { rememberColumns, shownColumns, type Shown } from "./columns";
import { titleOf } from "./columnTitles";
import { ALL, isShown, type Filter } from "./filter";
import { sortTrials, type Column, type Order } from "./sorting";
import { TrialRow } from "./TrialRow";
import styles from "./TrialTable.module.css";

const PAGE = 50;

interface Props {
  study: string;
  spec: StudySpec;
  trials: Trial[];
  standard: Configuration | undefined;
  /** Numbers of the trials that measured the best configuration. */
  best: ReadonlySet<number>;
  opened: number | null;
  onOpen: (trial: number | null) => void;
  /** Whether `trials` is a sample. If so, the service sorts and filters the table. */
  sampled: boolean;
  total: number;
  revision: number;
  filter: Filter;
  onFilter: (filter: Filter) => void;
  mayStop: boolean;
  link: (number: number, text: string) => ReactNode;
}

/** A table of all trials. A row opens to show the details of its trial. */
export function TrialTable({ study, spec, trials, standard, best, opened, onOpen, sampled, total, revision, filter, onFilter, mayStop, link }: Props) {
  const { state, reason } = filter;
  const [order, setOrder] = useState<Order>({ column: "number", descending: true });
  const [chosen, choose] = useState<Shown[]>(() => shownColumns(study, spec));
  const [page, setPage] = useState(0);
  const [sortedAt, setSortedAt] = useState(() => new Date());
  const filterId = useId();

  const sorted = useMemo(
    () =>
      sortTrials(
        trials.filter((trial) => isShown(filter, trial)),
        order,
        sortedAt,
      ),
    [trials, filter, order, sortedAt],
  );
  const asOf = useThrottled(revision, 2000);
  const asked = useQuery({ ...rowsQuery(study, { order, filter, offset: page * PAGE, size: PAGE }, asOf), enabled: sampled });
  // Without a filter the total is the study's own count, since the service may already count more trials.
  const filtered = state !== "" || reason !== null;
  const rows = !filtered ? total : sampled ? (asked.data?.total_count ?? total) : sorted.length;
  const pages = Math.max(1, Math.ceil(rows / PAGE));
  const current = Math.min(page, pages - 1);
  const shown = sampled ? (asked.data?.trials ?? []) : sorted.slice(current * PAGE, (current + 1) * PAGE);
  const columns = chosen.length + 3;

  // A new filter starts at the first page.
  const [lastFilter, setLastFilter] = useState(filter);
  if (filter !== lastFilter) {
    setLastFilter(filter);
    setPage(0);
  }

  // Show the page of a trial that was opened elsewhere.
  const [lastOpened, setLastOpened] = useState<number | null>(null);
  if (opened !== lastOpened) {
    setLastOpened(opened);
    const position = sorted.findIndex(({ number }) => number === opened);
    if (position >= 0 && !sampled) setPage(Math.floor(position / PAGE));
  }

  function sortBy(column: Column) {
    setSortedAt(new Date());
    setPage(0);
    setOrder((before) => ({ column, descending: before.column === column ? !before.descending : column === "number" }));
  }

  const counts = useMemo(() => countStates(trials), [trials]);
  const header = (column: Column, text: string, numeric = false) => (
    <Header column={column} order={order} onSort={sortBy} numeric={numeric}>
      {text}
    </Header>
  );

  return (
    <Card
      flush
      title={plural(total, { one: "# trial", other: "# trials" })}
      actions={
        <>
          {reason === null ? null : (
            <Button small title={reason || t`no reason given`} onClick={() => onFilter(ALL)}>
              {t`Filtered by reason ✕`}
            </Button>
          )}
          <ColumnChooser
            spec={spec}
            trials={trials}
            shown={chosen}
            onChange={(columns) => {
              choose(columns);
              rememberColumns(study, columns);
            }}
          />
          <label htmlFor={filterId} className="visually-hidden">
            {t`Filter by state`}
          </label>
          <select
            id={filterId}
            className={styles.filter}
            value={state}
            onChange={(event) => onFilter({ state: event.target.value as TrialState | "", reason: null })}
          >
            <option value="">{t`All states`}</option>
            {[...counts].map(([state, count]) => (
              <option key={state} value={state}>
                {stateText(state)}
                {sampled ? "" : ` (${count})`}
              </option>
            ))}
          </select>
        </>
      }
    >
      {asked.error === null ? null : <Problem error={asked.error} again={() => void asked.refetch()} />}
      {trials.length === 0 ? (
        <p className={styles.none}>{t`No trials yet.`}</p>
      ) : (
        <div className={styles.scroll}>
          <table className={styles.table}>
            <thead>
              <tr>
                <th scope="col" className={styles.opener}>
                  <span className="visually-hidden">{t`Details`}</span>
                </th>
                {header("number", "#", true)}
                {header("state", t`State`)}
                {chosen.map((column) => (
                  <Fragment key={column}>{heading(column, header)}</Fragment>
                ))}
              </tr>
            </thead>
            <tbody>
              {shown.map((trial) => (
                <TrialRow
                  key={trial.number}
                  study={study}
                  spec={spec}
                  trial={trial}
                  shown={chosen}
                  mayStop={mayStop}
                  link={link}
                  standard={standard}
                  isBest={best.has(trial.number)}
                  columns={columns}
                  open={opened === trial.number}
                  onOpen={onOpen}
                />
              ))}
            </tbody>
          </table>
        </div>
      )}
      {pages > 1 ? (
        <nav className={styles.pages} aria-label={t`Pages of trials`}>
          <Button small disabled={current === 0} onClick={() => setPage(current - 1)}>
            {t`Previous`}
          </Button>
          <span>{t`${formatNumber(current * PAGE + 1)}–${formatNumber(Math.min(rows, (current + 1) * PAGE))} of ${formatNumber(rows)}`}</span>
          <Button small disabled={current === pages - 1} onClick={() => setPage(current + 1)}>
            {t`Next`}
          </Button>
        </nav>
      ) : null}
    </Card>
  );
}

function heading(column: Shown, header: (column: Column, text: string, numeric?: boolean) => ReactNode): ReactNode {
  if (column === "agent" || column === "duration" || column.startsWith("metric:") || column.startsWith("param:")) {
    return header(column as Column, titleOf(column), column === "duration" || column.startsWith("metric:"));
  }
  return <th scope="col">{titleOf(column)}</th>;
}

function countStates(trials: Trial[]): Map<TrialState, number> {
  const counts = new Map<TrialState, number>();
  for (const { state } of trials) counts.set(state, (counts.get(state) ?? 0) + 1);
  return counts;
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
          {active ? (order.descending ? "↓" : "↑") : ""}
        </span>
      </button>
    </th>
  );
}
