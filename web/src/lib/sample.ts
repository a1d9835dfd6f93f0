

// The fractional parts of its multiples are spread evenly and follow no period.
const GOLDEN = 0.6180339887498949;

/** Return a uniform sample of about `most` items by their numbers: all if there are no more. An item stays in the sample while others arrive. */
export function uniform<T extends { number: number }>(items: readonly T[], most: number): T[] {
  if (items.length <= most) return [...items];
  return items.filter(({ number }) => (number * GOLDEN) % 1 < most / items.length);
}

/** Return the corners of the empirical distribution function: (value, share of the values up to it), in ascending order. */
export function distribution(values: readonly number[]): [number, number][] {
  const sorted = [...values].sort((a, b) => a - b);
  const corners: [number, number][] = [];
  sorted.forEach((value, index) => {
    // Of equal values, the last one counts.
    if (sorted[index + 1] !== value) corners.push([value, (index + 1) / sorted.length]);
  });
  return corners;
}
