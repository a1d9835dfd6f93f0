import styles from "./Table.module.css";

interface Props {
  text: string;
  /** The name of this order in the API. */
  by: string;
  /** The present order; a leading - means descending. */
  sort: string;
  /** Whether the first click sorts in descending order. */
  down?: boolean;
  number?: boolean;
  onSort: (sort: string) => void;
}

/** A column header that sorts by its column. A second click reverses the order. */
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
