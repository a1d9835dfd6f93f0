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
