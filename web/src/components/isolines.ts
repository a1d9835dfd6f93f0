import { contours } from "d3-contour";
import type { CustomSeriesRenderItem } from "echarts";
import { format } from "echarts/core";

type Place = [number, number];

/** Values over a plane: `values[i][j]` at `columns[i]` and `rows[j]`, both ascending. */
export interface Grid {
  columns: readonly number[];
  rows: readonly number[];
  values: readonly (readonly number[])[];
}

export interface Isoline {
  level: number;
  points: Place[];
}

/** The data of an isoline series. `write` formats a level; `step` is its distance to the next one. */
export interface IsolinePayload {
  grid: Grid;
  /** Points that labels should not cover. */
  marks: readonly Place[];
  write: (level: number, step: number) => string;
}

/** A line on the screen: its points, and the distance of each along the line from the first. */
interface Path {
  points: Place[];
  far: readonly number[];
  length: number;
}

// About how many levels there are.
const ABOUT = 7;
// Pixels: the height of a label with its outline, and the distance between the points of a line that labels must not cover.
const HIGH = 16;
const STEP = 5;
// Above the level at which ECharts draws points, which come after the lines.
const ON_TOP = 101;
// Readable on every colour of the scale, like the points of trials.
const [LIGHT, DARK] = ["#ffffff", "rgb(0 0 0 / 65%)"];

/** Return lines of equal value at a few round levels. A closed line ends where it begins. */
export function isolinesOf({ columns, rows, values }: Grid): Isoline[] {
  const size: Place = [columns.length, rows.length];
  const flat = rows.flatMap((_, row) => values.map((line) => line[row] ?? NaN));
  return contours()
    .size(size)
    .thresholds(ABOUT)(flat)
    .flatMap(({ value, coordinates }) =>
      coordinates
        .flat()
        .flatMap((outline) => within(outline as Place[], size))
        .map((line) => ({ level: value, points: line.map(([x, y]): Place => [along(columns, x - 0.5), along(rows, y - 0.5)]) })),
    );
}

/** Return the parts of an outline that do not follow the edge of the grid. */
function within(outline: Place[], [width, height]: Place): Place[][] {
  const isEdge = ([x, y]: Place) => x === 0 || y === 0 || x === width || y === height;
  const first = outline.findIndex(isEdge);
  if (first < 0) return [outline];
  const parts: Place[][] = [[]];
  // The last point repeats the first one.
  for (const point of [...outline.slice(first, -1), ...outline.slice(0, first)]) {
    if (isEdge(point)) parts.push([]);
    else parts.at(-1)?.push(point);
  }
  return parts.filter(({ length }) => length > 1);
}

/** Return the value at a fractional index of a list. */
function along(list: readonly number[], place: number): number {
  const low = Math.max(0, Math.min(Math.floor(place), list.length - 2));
  const [from = NaN, to = from] = [list[low], list[low + 1]];
  return from + (to - from) * (place - low);
}

/** Draw the series that `isolines` (plot.ts) describes. */
export const drawIsolines: CustomSeriesRenderItem = ({ itemPayload }, api) => {
  const { grid, marks, write } = itemPayload as unknown as IsolinePayload;
  const lines = isolinesOf(grid).map(({ level, points }) => ({ level, path: pathOf(points.map((point) => api.coord(point) as Place)) }));
  const covered = lines.map(({ path }) => placesOn(path));
  const marked = marks.map((point) => api.coord([...point]) as Place);
  const levels = [...new Set(lines.map(({ level }) => level))];
  const step = Math.min(...levels.slice(1).map((level, index) => level - (levels[index] ?? NaN)));
  const font = api.font({ fontSize: 11, fontWeight: 600 });
  const labelled: Place[] = [];
  const [strokes, labels]: [Place[][], { text: string; middle: Place; angle: number }[]] = [[], []];
  // Longer lines get their labels first.
  for (const [place, { level, path }] of [...lines.entries()].sort(([, a], [, b]) => b.path.length - a.path.length)) {
    const text = write(level, step);
    const gap = format.getTextRect(text, font).width + 8;
    const others = covered.flatMap((places, other) => (other === place ? [] : places));
    const start = gapFor(path, gap, labelled, [...others, ...marked]) ?? gapFor(path, gap, labelled, others);
    if (start === undefined) {
      strokes.push(path.points);
      continue;
    }
    strokes.push(cut(path, 0, start), cut(path, start + gap, path.length));
    const [from, to] = [pointAt(path, start), pointAt(path, start + gap)];
    const middle: Place = [(from[0] + to[0]) / 2, (from[1] + to[1]) / 2];
    labelled.push(middle);
    // Never upside down.
    const [[x1, y1], [x2, y2]] = from[0] <= to[0] ? [from, to] : [to, from];
    labels.push({ text, middle, angle: -Math.atan2(y2 - y1, x2 - x1) });
  }
  const stroke = (points: Place[], color: string, lineWidth: number) => ({
    type: "polyline" as const,
    shape: { points },
    style: { fill: "none", stroke: color, lineWidth },
  });
  return {
    type: "group",
    silent: true,
    children: [
      ...strokes.map((points) => stroke(points, DARK, 3)),
      ...strokes.map((points) => stroke(points, LIGHT, 1.2)),
      ...labels.map(({ text, middle: [x, y], angle }) => ({
        type: "text" as const,
        x,
        y,
        rotation: angle,
        z2: ON_TOP,
        style: { text, fill: LIGHT, stroke: DARK, lineWidth: 3, font, align: "center" as const, verticalAlign: "middle" as const },
      })),
    ],
  };
};

/**
 * Return where on a line the gap for a label begins: where the line is straight, near its middle, away from the middles of
 * other labels, and where the label covers no point of `taken`. Undefined if there is no such gap.
 */
export function gapFor(path: Path, gap: number, labelled: readonly Place[], taken: readonly Place[]): number | undefined {
  const { length } = path;
  let found: { start: number; cost: number } | undefined;
  for (let start = gap / 2; start <= length - 1.5 * gap; start += 4) {
    const [from, middle, to] = [pointAt(path, start), pointAt(path, start + gap / 2), pointAt(path, start + gap)];
    const bent = 1 - distance(from, to) / gap;
    const cost = bent + Math.abs(start + gap / 2 - length / 2) / length / 5;
    if (bent >= 0.1 || (found !== undefined && cost >= found.cost)) continue;
    if (labelled.some((other) => distance(other, middle) < gap) || taken.some((place) => isWithin(place, from, to))) continue;
    found = { start, cost };
  }
  return found?.start;
}

/** Return whether a label from one point to another covers a place. */
function isWithin([x, y]: Place, [x1, y1]: Place, [x2, y2]: Place): boolean {
  const width = Math.hypot(x2 - x1, y2 - y1);
  const [right, down] = [(x2 - x1) / width, (y2 - y1) / width];
  const [along, across] = [(x - x1) * right + (y - y1) * down, (y - y1) * right - (x - x1) * down];
  return along > 0 && along < width && Math.abs(across) < HIGH / 2;
}

/** Return points of a line, close enough that no label fits between two of them. */
function placesOn(path: Path): Place[] {
  return Array.from({ length: Math.ceil(path.length / STEP) + 1 }, (_, index) => pointAt(path, Math.min(index * STEP, path.length)));
}

function distance([a, b]: Place, [c, d]: Place): number {
  return Math.hypot(c - a, d - b);
}

export function pathOf(points: Place[]): Path {
  let length = 0;
  const far = points.map((point, index) => (length += distance(points[index - 1] ?? point, point)));
  return { points, far, length };
}

/** Return the point at a distance along the line. */
function pointAt({ points, far }: Path, wanted: number): Place {
  const next = Math.max(1, far.findIndex((one) => one >= wanted));
  const [[x = NaN, y = NaN] = [], [nextX = NaN, nextY = NaN] = []] = [points[next - 1], points[next]];
  const [before = 0, after = 0] = [far[next - 1], far[next]];
  const share = after > before ? (wanted - before) / (after - before) : 0;
  return [x + (nextX - x) * share, y + (nextY - y) * share];
}

/** Return the part of a line between two distances along it. */
function cut(path: Path, start: number, end: number): Place[] {
  const between = path.points.filter((_, index) => (path.far[index] ?? 0) > start && (path.far[index] ?? 0) < end);
  return [pointAt(path, start), ...between, pointAt(path, end)];
}
