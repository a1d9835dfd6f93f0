const OPERATORS = /^\s*(.+?)\s+(!=|<=|>=|=|<|>|~)\s+(.*?)\s*$/s;
const DENSE = /^\s*([^=!<>~]+?)\s*(!=|<=|>=|=|<|>|~)\s*(.*?)\s*$/s;

/** A condition on a column, such as "threads > 8", in its parts. */
export interface Condition {
  column: string;
  operator: string;
  value: string;
}

/** Return the parts of a condition, or null if the text is none. A column may contain an operator if spaces surround the condition's own. */
export function parse(text: string): Condition | null {
  const [, column, operator, value] = OPERATORS.exec(text) ?? DENSE.exec(text) ?? [];
  return column === undefined || operator === undefined || value === undefined ? null : { column, operator, value };
}

/** A column of a table that the console has as a whole: the value of a row, null if it has none. */
type Column<Row> = { number: (row: Row) => number | null } | { text: (row: Row) => string | null };
export type Columns<Row> = Readonly<Record<string, Column<Row>>>;

/** Return the rows that meet all conditions, and the first condition that does not fit the columns; it selects nothing. */
export function select<Row>(rows: readonly Row[], where: readonly string[], columns: Columns<Row>): { rows: Row[]; wrong: string | null } {
  const tests = where.map((text) => testOf(text, columns));
  const wrong = where.find((_, index) => tests[index] === null) ?? null;
  return { rows: wrong === null ? rows.filter((row) => tests.every((test) => test?.(row))) : [], wrong };
}

/** Return whether a row meets a condition, as the service decides it for the lists that it filters. */
function testOf<Row>(text: string, columns: Columns<Row>): ((row: Row) => boolean) | null {
  const { column, operator, value } = parse(text) ?? { column: "", operator: "", value: "" };
  const found = Object.hasOwn(columns, column) ? columns[column] : undefined;
  if (found === undefined) return null;
  if ("text" in found) {
    const wanted = value.toLowerCase();
    if (operator === "=") return (row) => found.text(row)?.toLowerCase() === wanted;
    if (operator === "!=") return (row) => found.text(row)?.toLowerCase() !== wanted;
    return operator === "~" ? (row) => found.text(row)?.toLowerCase().includes(wanted) ?? false : null;
  }
  const limit = Number(value);
  const compare = COMPARISONS[operator];
  if (compare === undefined || value === "" || !Number.isFinite(limit)) return null;
  return (row) => {
    const number = found.number(row);
    return number === null ? operator === "!=" : compare(number, limit);
  };
}

const COMPARISONS: Readonly<Record<string, (value: number, limit: number) => boolean>> = {
  "=": (value, limit) => value === limit,
  "!=": (value, limit) => value !== limit,
  "<": (value, limit) => value < limit,
  "<=": (value, limit) => value <= limit,
  ">": (value, limit) => value > limit,
  ">=": (value, limit) => value >= limit,
};
