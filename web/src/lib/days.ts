/** The moment at which a day of the viewer's zone ("2026-01-31") begins, so many days later; undefined: no such day. */
export function startOfDay(day: string, later = 0): string | undefined {
  const [year, month, date] = day.split("-").map(Number);
  const start = new Date(year ?? NaN, (month ?? NaN) - 1, (date ?? NaN) + later);
  return Number.isNaN(start.getTime()) ? undefined : start.toISOString();
}
