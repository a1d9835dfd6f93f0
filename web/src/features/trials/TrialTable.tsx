import { i18n, type MessageDescriptor } from "@lingui/core";
import { msg, plural, t } from "@lingui/core/macro";
import { useQuery } from "@tanstack/react-query";
import { Fragment, useEffect, useId, useMemo, useRef, useState, type ReactNode } from "react";
import { StateBadge, stateText } from "@/components/Badge";
import { Button } from "@/components/Button";
import { Card } from "@/components/Card";
import { Problem } from "@/components/Message";
import { Popover } from "@/components/Popover";
import type { Configuration, StudySpec, Trial, TrialState } from "@/lib/api/client";
import { useNow, useThrottled } from "@/lib/clock";
import { formatDuration, formatMetric, formatNumber, formatTime, formatValue, unitOf } from "@/lib/format";
import { rowsQuery } from "./api";
import { columnsOf, DIFFERENCES, rememberColumns, shownColumns, type Shown } from "./columns";
import { differences } from "./differences";
import { ALL, isShown, type Filter } from "./filter";
import { originText } from "./origins";
import { duration, measuredBy, sortTrials, type Column, type Order } from "./sorting";
import { TrialDetails } from "./TrialDetails";
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
  /** Whether `trials` is a sample: then the service makes the table. How many there are, and the study's revision. */
  sampled: boolean;
  total: number;
  revision: number;
  filter: Filter;
  onFilter: (filter: Filter) => void;
  mayStop: boolean;
  link: (number: number, text: string) => ReactNode;
}

/** All trials; a row opens to show all of one. */
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
  // All that there are is one number, the study's: what the service counts now may be one more.
  const filtered = state !== "" || reason !== null;
  const rows = !filtered ? total : sampled ? (asked.data?.total_count ?? total) : sorted.length;
  const pages = Math.max(1, Math.ceil(rows / PAGE));
  const current = Math.min(page, pages - 1);
  const shown = sampled ? (asked.data?.trials ?? []) : sorted.slice(current * PAGE, (current + 1) * PAGE);
  const columns = chosen.length + 3;

  // What is shown now has a first page of its own, wherever the filter was changed.
  const [lastFilter, setLastFilter] = useState(filter);
  if (filter !== lastFilter) {
    setLastFilter(filter);
    setPage(0);
  }

  // A trial that was picked elsewhere must be on the page that is shown.
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
            <Button small title={reason || t`no reason was given`} onClick={() => onFilter(ALL)}>
              {t`One reason ✕`}
            </Button>
          )}
          <Columns
            spec={spec}
            trials={trials}
            shown={chosen}
            onChange={(columns) => {
              choose(columns);
              rememberColumns(study, columns);
            }}
          />
          <label htmlFor={filterId} className="visually-hidden">
            {t`Show trials that are`}
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
                <Row
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

const TITLES: Partial<Record<Shown, MessageDescriptor>> = {
  agent: msg`Measured by`,
  duration: msg`Duration`,
  [DIFFERENCES]: msg`Differs from the default in`,
  origin: msg`Origin`,
  attempt: msg`Attempt`,
  started: msg`Started`,
  reason: msg`Reason`,
};

/** What a column is called: its metric, its parameter, or what it is. */
function titleOf(column: Shown): string {
  const title = TITLES[column];
  return title === undefined ? column.slice(column.indexOf(":") + 1) : i18n._(title);
}

function heading(column: Shown, header: (column: Column, text: string, numeric?: boolean) => ReactNode): ReactNode {
  if (column === "agent" || column === "duration" || column.startsWith("metric:") || column.startsWith("param:")) {
    return header(column as Column, titleOf(column), column === "duration" || column.startsWith("metric:"));
  }
  return <th scope="col">{titleOf(column)}</th>;
}

/** Which columns are shown. */
function Columns({ spec, trials, shown, onChange }: { spec: StudySpec; trials: Trial[]; shown: Shown[]; onChange: (shown: Shown[]) => void }) {
  const all = columnsOf(spec, trials);
  return (
    <Popover label={t`Columns`} trigger={<Button small>{t`Columns`}</Button>}>
      <ul className={styles.columns}>
        {all.map((column) => (
          <li key={column}>
            <label>
              <input
                type="checkbox"
                checked={shown.includes(column)}
                onChange={({ target: { checked } }) => onChange(all.filter((one) => (one === column ? checked : shown.includes(one))))}
              />
              {titleOf(column)}
              {column.startsWith("param:") ? <span className={styles.origin}>{t`parameter`}</span> : null}
            </label>
          </li>
        ))}
      </ul>
    </Popover>
  );
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

interface RowProps {
  study: string;
  spec: StudySpec;
  trial: Trial;
  shown: Shown[];
  mayStop: boolean;
  link: (number: number, text: string) => ReactNode;
  standard: Configuration | undefined;
  isBest: boolean;
  columns: number;
  open: boolean;
  onOpen: (trial: number | null) => void;
}

function Row({ study, spec, trial, shown, mayStop, link, standard, isBest, columns, open, onOpen }: RowProps) {
  const id = useId();
  const row = useRef<HTMLTableRowElement>(null);
  useEffect(() => {
    if (open) row.current?.scrollIntoView({ block: "nearest" });
  }, [open]);
  return (
    <>
      <tr ref={row} className={isBest ? styles.best : undefined}>
        <td className={styles.opener}>
          <button
            type="button"
            className={styles.toggle}
            aria-expanded={open}
            aria-controls={id}
            aria-label={t`Details of trial ${trial.number}`}
            onClick={() => onOpen(open ? null : trial.number)}
          >
            <span aria-hidden="true">{open ? "▾" : "▸"}</span>
          </button>
        </td>
        <th scope="row" className={styles.number}>
          {link(trial.number, String(trial.number))}
        </th>
        <td>
          <StateBadge state={trial.state} />
          {isBest ? <span className={styles.mark}>{spec.objectives.length > 1 ? t`trade-off` : t`best`}</span> : null}
          {trial.origin === "suggested" ? null : <span className={styles.origin}>{originText(trial.origin)}</span>}
        </td>
        {shown.map((column) => (
          <Fragment key={column}>{cell(column, trial, spec, standard)}</Fragment>
        ))}
      </tr>
      {open ? (
        <tr id={id}>
          <td colSpan={columns} className={styles.details}>
            <TrialDetails study={study} spec={spec} trial={trial} standard={standard} mayStop={mayStop} />
          </td>
        </tr>
      ) : null}
    </>
  );
}

function cell(column: Shown, trial: Trial, spec: StudySpec, standard: Configuration | undefined): ReactNode {
  if (column.startsWith("metric:")) {
    const metric = column.slice(7);
    const value = trial.metrics?.[metric];
    const objective = spec.objectives.find((objective) => objective.metric === metric) ?? { metric };
    return <td className={styles.number}>{value === undefined ? "—" : formatMetric(value, unitOf(objective))}</td>;
  }
  if (column.startsWith("param:")) {
    const name = column.slice(6);
    const differs = standard !== undefined && trial.params[name] !== standard[name];
    return <td className={differs ? styles.value : styles.standard}>{formatValue(trial.params[name])}</td>;
  }
  switch (column) {
    case DIFFERENCES:
      return <td className={styles.differences}>{differences(trial.params, standard)}</td>;
    case "agent":
      return <td>{measuredBy(trial) || "—"}</td>;
    case "duration":
      return (
        <td className={styles.number}>
          <Duration trial={trial} />
        </td>
      );
    case "started":
      return <td>{trial.started_at === null ? "—" : formatTime(new Date(trial.started_at))}</td>;
    case "attempt":
      return <td className={styles.number}>{trial.attempt}</td>;
    case "reason":
      return <td className={styles.differences}>{trial.reason}</td>;
    default:
      return <td>{originText(trial.origin)}</td>;
  }
}

function Duration({ trial }: { trial: Trial }) {
  return trial.state === "ACTIVE" ? <RunningDuration trial={trial} /> : <>{text(duration(trial, new Date()))}</>;
}

function RunningDuration({ trial }: { trial: Trial }) {
  const seconds = duration(trial, useNow(1000));
  return <>{text(seconds === null || seconds < 1 ? seconds : Math.floor(seconds))}</>;
}

function text(seconds: number | null): string {
  return seconds === null ? "—" : formatDuration(seconds);
}
