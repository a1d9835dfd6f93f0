import { Fragment, useEffect, useId, useMemo, useRef, useState, type ReactNode } from "react";
import { StateBadge, stateText } from "@/components/Badge";
import { Button } from "@/components/Button";
import { Card } from "@/components/Card";
import type { Configuration, StudySpec, Trial, TrialState } from "@/lib/api/client";
import { useNow } from "@/lib/clock";
import { formatDuration, formatMetric, formatValue, unitOf } from "@/lib/format";
import { duration, measuredBy, sortTrials, type Column, type Order } from "./sorting";
import { TrialDetails } from "./TrialDetails";
import styles from "./TrialTable.module.css";

const PAGE = 50;
// With more parameters than this a table of columns is too wide: then what differs from the default is listed.
const FEW = 6;

interface Props {
  study: string;
  spec: StudySpec;
  trials: Trial[];
  standard: Configuration | undefined;
  /** Numbers of the trials that measured the best configuration. */
  best: ReadonlySet<number>;
  opened: number | null;
  onOpen: (trial: number | null) => void;
}

/** All trials; a row opens to show all of one. */
export function TrialTable({ study, spec, trials, standard, best, opened, onOpen }: Props) {
  const [order, setOrder] = useState<Order>({ column: "number", descending: true });
  const [state, setState] = useState<TrialState | "">("");
  const [page, setPage] = useState(0);
  const [sortedAt, setSortedAt] = useState(() => new Date());
  const filterId = useId();

  const sorted = useMemo(
    () =>
      sortTrials(
        trials.filter((trial) => state === "" || trial.state === state),
        order,
        sortedAt,
      ),
    [trials, state, order, sortedAt],
  );
  const pages = Math.max(1, Math.ceil(sorted.length / PAGE));
  const current = Math.min(page, pages - 1);
  const shown = sorted.slice(current * PAGE, (current + 1) * PAGE);
  const parameters = spec.space.parameters.length <= FEW ? spec.space.parameters.map(({ name }) => name) : null;
  const columns = 5 + spec.objectives.length + (parameters?.length ?? 1);

  // A trial that was picked elsewhere must be on the page that is shown.
  const [lastOpened, setLastOpened] = useState<number | null>(null);
  if (opened !== lastOpened) {
    setLastOpened(opened);
    const position = sorted.findIndex(({ number }) => number === opened);
    if (position >= 0) setPage(Math.floor(position / PAGE));
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
      title={`${trials.length} ${trials.length === 1 ? "trial" : "trials"}`}
      actions={
        <>
          <label htmlFor={filterId} className="visually-hidden">
            Show trials that are
          </label>
          <select
            id={filterId}
            className={styles.filter}
            value={state}
            onChange={(event) => {
              setState(event.target.value as TrialState | "");
              setPage(0);
            }}
          >
            <option value="">All states</option>
            {[...counts].map(([state, count]) => (
              <option key={state} value={state}>
                {stateText(state)} ({count})
              </option>
            ))}
          </select>
        </>
      }
    >
      {trials.length === 0 ? (
        <p className={styles.none}>No trials yet.</p>
      ) : (
        <div className={styles.scroll}>
          <table className={styles.table}>
            <thead>
              <tr>
                <th scope="col" className={styles.opener}>
                  <span className="visually-hidden">Details</span>
                </th>
                {header("number", "#", true)}
                {header("state", "State")}
                {spec.objectives.map(({ metric }) => (
                  <Fragment key={metric}>{header(`metric:${metric}`, metric, true)}</Fragment>
                ))}
                {parameters === null ? (
                  <th scope="col">Differs from the default in</th>
                ) : (
                  parameters.map((name) => <Fragment key={name}>{header(`param:${name}`, name)}</Fragment>)
                )}
                {header("agent", "Measured by")}
                {header("duration", "Duration", true)}
              </tr>
            </thead>
            <tbody>
              {shown.map((trial) => (
                <Row
                  key={trial.number}
                  study={study}
                  spec={spec}
                  trial={trial}
                  parameters={parameters}
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
        <nav className={styles.pages} aria-label="Pages of trials">
          <Button small disabled={current === 0} onClick={() => setPage(current - 1)}>
            Previous
          </Button>
          <span>
            {current * PAGE + 1}–{Math.min(sorted.length, (current + 1) * PAGE)} of {sorted.length}
          </span>
          <Button small disabled={current === pages - 1} onClick={() => setPage(current + 1)}>
            Next
          </Button>
        </nav>
      ) : null}
    </Card>
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
  parameters: string[] | null;
  standard: Configuration | undefined;
  isBest: boolean;
  columns: number;
  open: boolean;
  onOpen: (trial: number | null) => void;
}

function Row({ study, spec, trial, parameters, standard, isBest, columns, open, onOpen }: RowProps) {
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
            aria-label={`Details of trial ${trial.number}`}
            onClick={() => onOpen(open ? null : trial.number)}
          >
            <span aria-hidden="true">{open ? "▾" : "▸"}</span>
          </button>
        </td>
        <th scope="row" className={styles.number}>
          {trial.number}
        </th>
        <td>
          <StateBadge state={trial.state} />
          {isBest ? <span className={styles.mark}>{spec.objectives.length > 1 ? "trade-off" : "best"}</span> : null}
          {trial.origin === "suggested" ? null : <span className={styles.origin}>{trial.origin}</span>}
        </td>
        {spec.objectives.map((objective) => {
          const value = trial.metrics?.[objective.metric];
          return (
            <td key={objective.metric} className={styles.number}>
              {value === undefined ? "—" : formatMetric(value, unitOf(objective))}
            </td>
          );
        })}
        {parameters === null ? (
          <td className={styles.differences}>{differences(trial.params, standard)}</td>
        ) : (
          parameters.map((name) => (
            <td key={name} className={standard !== undefined && trial.params[name] !== standard[name] ? styles.value : styles.standard}>
              {formatValue(trial.params[name])}
            </td>
          ))
        )}
        <td>{measuredBy(trial) || "—"}</td>
        <td className={styles.number}>
          <Duration trial={trial} />
        </td>
      </tr>
      {open ? (
        <tr id={id}>
          <td colSpan={columns} className={styles.details}>
            <TrialDetails study={study} spec={spec} trial={trial} standard={standard} />
          </td>
        </tr>
      ) : null}
    </>
  );
}

function differences(params: Configuration, standard: Configuration | undefined): ReactNode {
  if (standard === undefined) return "";
  const names = new Set([...Object.keys(params), ...Object.keys(standard)]);
  const differing = [...names].filter((name) => params[name] !== standard[name]);
  if (differing.length === 0) return "nothing";
  const first = differing
    .slice(0, 3)
    .map((name) => `${name} ${formatValue(params[name])}`)
    .join(", ");
  return differing.length > 3 ? `${first} and ${differing.length - 3} more` : first;
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
