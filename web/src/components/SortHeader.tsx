import styles from "./Table.module.css";

interface Props {
  text: string;
  /** What is sorted by; the service's word. */
  by: string;
  /** What is sorted by now; with - in front, the last first. */
  sort: string;
  /** Whether the first press brings the largest to the top. */
  down?: boolean;
  number?: boolean;
  onSort: (sort: string) => void;
}

/** A column's head that sorts by it: once this way, twice that way. */
export function SortHeader({ text, by, sort, down = false, number = false, onSort }: Props) {
  const now = sort === by ? "ascending" : sort === `-${by}` ? "descending" : undefined;
  const next = now === undefined ? (down ? `-${by}` : by) : now === "ascending" ? `-${by}` : by;
  return (
    <th scope="col" aria-sort={now} className={number ? styles.number : undefined}>
      <button type="button" className={styles.sort} onClick={() => onSort(next)}>
        {text}
        <span aria-hidden="true">{now === undefined ? "" : now === "ascending" ? " ↑" : " ↓"}</span>
      </button>
    </th>
  );
}
