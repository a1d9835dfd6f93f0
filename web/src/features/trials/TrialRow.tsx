import { i18n, type MessageDescriptor } from "@lingui/core";
import { msg, t } from "@lingui/core/macro";
import { ChevronDown, ChevronRight } from "lucide-react";
import { Fragment, useEffect, useId, useRef, type ReactNode } from "react";
import { StateBadge } from "@/components/Badge";
import type { Configuration, StudySpec, Trial } from "@/lib/api/client";
import { useNow } from "@/lib/clock";
import { formatDuration, formatMetric, formatNumber, formatTime, formatValue, unitOf } from "@/lib/format";
import { reasonText } from "@/lib/reasons";
import { DIFFERENCES, type Shown } from "./columns";
import { duration, measuredBy } from "./tableQuery";
import { TrialDetails } from "./TrialDetails";
import styles from "./TrialTable.module.css";

interface Props {
  study: string;
  spec: StudySpec;
  trial: Trial;
  shown: Shown[];
  mayStop: boolean;
  link: (number: number, text: string) => ReactNode;
  standard: Configuration | undefined;
  isBest: boolean;
  /** A penalty stands in place of a measurement. */
  isPenalised: boolean;
  columns: number;
  open: boolean;
  onOpen: (trial: number | null) => void;
  selected: boolean;
  onSelect: (selected: boolean) => void;
}

/** One trial of the table. It opens to show the details of the trial. */
export function TrialRow({ study, spec, trial, shown, mayStop, link, standard, isBest, isPenalised, columns, open, onOpen, selected, onSelect }: Props) {
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
            {open ? <ChevronDown /> : <ChevronRight />}
          </button>
        </td>
        <td className={styles.opener}>
          <input type="checkbox" aria-label={t`Select trial ${trial.number}`} checked={selected} onChange={({ target }) => onSelect(target.checked)} />
        </td>
        <th scope="row" className={styles.number}>
          {link(trial.number, String(trial.number))}
        </th>
        <td>
          <StateBadge state={trial.state} />
          {isBest ? <span className={styles.mark}>{spec.objectives.length > 1 ? t`trade-off` : t`best`}</span> : null}
          {trial.breaks === null ? null : (
            <span className={styles.breaks} title={trial.breaks.join("; ")}>
              {t`breaks a constraint`}
            </span>
          )}
          {trial.origin === "suggested" ? null : <span className={styles.origin}>{originText(trial.origin)}</span>}
        </td>
        {shown.map((column) => (
          <Fragment key={column}>{cell(column, trial, spec, standard, isPenalised)}</Fragment>
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

function cell(column: Shown, trial: Trial, spec: StudySpec, standard: Configuration | undefined, isPenalised: boolean): ReactNode {
  if (column.startsWith("metric:")) {
    const metric = column.slice(7);
    const value = trial.metrics?.[metric];
    const objective = spec.objectives.find((objective) => objective.metric === metric) ?? { metric };
    if (isPenalised && spec.objectives.some((one) => one.metric === metric)) {
      return (
        <td className={styles.number} title={value === undefined ? "" : formatMetric(value, unitOf(objective))}>
          {t`penalty`}
        </td>
      );
    }
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
      return <td className={styles.differences}>{reasonText(trial.reason, trial.reason_data)}</td>;
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

const NAMES: Record<Trial["origin"], MessageDescriptor> = {
  suggested: msg`suggested`,
  replicate: msg`replicate`,
  check: msg`final check`,
  default: msg`default`,
  added: msg`added`,
  enqueued: msg`enqueued`,
  earlier: msg`earlier study`,
  rollout: msg`roll-out`,
};

/** Return the text of a trial's origin. */
export function originText(origin: Trial["origin"]): string {
  return i18n._(NAMES[origin]);
}

/** Describe how a configuration differs from the default, with at most three parameters by name. */
export function differences(params: Configuration, standard: Configuration | undefined): string {
  if (standard === undefined) return "";
  const names = new Set([...Object.keys(params), ...Object.keys(standard)]);
  const differing = [...names].filter((name) => params[name] !== standard[name]);
  if (differing.length === 0) return t`the default`;
  const first = differing
    .slice(0, 3)
    .map((name) => `${name} ${formatValue(params[name])}`)
    .join(", ");
  return differing.length > 3 ? t`${first} and ${formatNumber(differing.length - 3)} more` : first;
}
