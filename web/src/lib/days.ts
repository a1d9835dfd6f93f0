/** Return the start of a day ("2026-01-31") in the viewer's time zone, `later` days later; undefined if there is no such day. */
export function startOfDay(day: string, later = 0): string | undefined {
  const [year, month, date] = day.split("-").map(Number);
  const start = new Date(year ?? NaN, (month ?? NaN) - 1, (date ?? NaN) + later);
  return Number.isNaN(start.getTime()) ? undefined : start.toISOString();
}
