// The fractional parts of its multiples are spread evenly and follow no period.
const GOLDEN = 0.6180339887498949;

/** Return a uniform sample of about `most` items by their numbers: all if there are no more. An item stays in the sample while others arrive. */
export function uniform<T extends { number: number }>(items: readonly T[], most: number): T[] {
  if (items.length <= most) return [...items];
  return items.filter(({ number }) => (number * GOLDEN) % 1 < most / items.length);
}
