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

/** What an isoline series draws, and how a level is written: beside it stands how far it is to the next. */
export interface IsolinePayload {
  grid: Grid;
  /** What labels had better not lie on. */
  marks: readonly Place[];
  write: (level: number, step: number) => string;
}

/** A line on the screen: its points, and how far along it each is from the first. */
interface Path {
  points: Place[];
  far: readonly number[];
  length: number;
}

const ABOUT = 7;
// Pixels: how high a label is, with its outline, and how far the places on a line are from each other that no label may lie on.
const HIGH = 16;
const STEP = 5;
// Above what ECharts draws points at, which come after the lines.
const ON_TOP = 101;
// Over all of the scale from dark to bright, as trials' points are.
const [LIGHT, DARK] = ["#ffffff", "rgb(0 0 0 / 65%)"];

/** Lines along which the values are the same, at a few round levels; those that close end where they begin. */
export function isolinesOf({ columns, rows, values }: Grid): Isoline[] {
  const size: Place = [columns.length, rows.length];
  const flat = rows.flatMap((_, row) => values.map((line) => line[row] ?? NaN));
  return contours()
    .size(size)
    .thresholds(ABOUT)(flat)
    .flatMap(({ value, coordinates }) =>
      coordinates
        .flat()
        .flatMap((ring) => within(ring as Place[], size))
        .map((line) => ({ level: value, points: line.map(([x, y]): Place => [along(columns, x - 0.5), along(rows, y - 0.5)]) })),
    );
}

/** The parts of an area's outline that do not merely follow the grid's own edge. */
function within(ring: Place[], [width, height]: Place): Place[][] {
  const isEdge = ([x, y]: Place) => x === 0 || y === 0 || x === width || y === height;
  const first = ring.findIndex(isEdge);
  if (first < 0) return [ring];
  const parts: Place[][] = [[]];
  // The last point is the first one again.
  for (const point of [...ring.slice(first, -1), ...ring.slice(0, first)]) {
    if (isEdge(point)) parts.push([]);
    else parts.at(-1)?.push(point);
  }
  return parts.filter(({ length }) => length > 1);
}

/** The value at a place between two of a list. */
function along(list: readonly number[], place: number): number {
  const low = Math.max(0, Math.min(Math.floor(place), list.length - 2));
  const [from = NaN, to = from] = [list[low], list[low + 1]];
  return from + (to - from) * (place - low);
}

/** Draws the series that `isolines` (plot.ts) describes. */
export const drawIsolines: CustomSeriesRenderItem = ({ itemPayload }, api) => {
  const { grid, marks, write } = itemPayload as unknown as IsolinePayload;
  const lines = isolinesOf(grid).map(({ level, points }) => ({ level, path: pathOf(points.map((point) => api.coord(point) as Place)) }));
  const trodden = lines.map(({ path }) => placesOn(path));
  const marked = marks.map((point) => api.coord([...point]) as Place);
  const levels = [...new Set(lines.map(({ level }) => level))];
  const step = Math.min(...levels.slice(1).map((level, index) => level - (levels[index] ?? NaN)));
  const font = api.font({ fontSize: 11, fontWeight: 600 });
  const labelled: Place[] = [];
  const [strokes, labels]: [Place[][], { text: string; middle: Place; angle: number }[]] = [[], []];
  // The longest line of a level is the one to read it from.
  for (const [place, { level, path }] of [...lines.entries()].sort(([, a], [, b]) => b.path.length - a.path.length)) {
    const text = write(level, step);
    const gap = format.getTextRect(text, font).width + 8;
    const others = trodden.flatMap((places, other) => (other === place ? [] : places));
    const start = roomFor(path, gap, labelled, [...others, ...marked]) ?? roomFor(path, gap, labelled, others);
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
 * Where on a line a gap for a label begins: where it is straight, near its middle, away from the middles of other labels, and
 * where what is `taken` lies beside it; undefined: nowhere.
 */
export function roomFor(path: Path, gap: number, labelled: readonly Place[], taken: readonly Place[]): number | undefined {
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

/** Whether a place lies under a label that goes from one point to another. */
function isWithin([x, y]: Place, [x1, y1]: Place, [x2, y2]: Place): boolean {
  const width = Math.hypot(x2 - x1, y2 - y1);
  const [right, down] = [(x2 - x1) / width, (y2 - y1) / width];
  const [along, across] = [(x - x1) * right + (y - y1) * down, (y - y1) * right - (x - x1) * down];
  return along > 0 && along < width && Math.abs(across) < HIGH / 2;
}

/** Places on a line, as close to each other as it takes for none to lie between two of them. */
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

/** The point at a distance along the line. */
function pointAt({ points, far }: Path, wanted: number): Place {
  const next = Math.max(1, far.findIndex((one) => one >= wanted));
  const [[x = NaN, y = NaN] = [], [nextX = NaN, nextY = NaN] = []] = [points[next - 1], points[next]];
  const [before = 0, after = 0] = [far[next - 1], far[next]];
  const share = after > before ? (wanted - before) / (after - before) : 0;
  return [x + (nextX - x) * share, y + (nextY - y) * share];
}

/** The part of a line between two distances along it. */
function cut(path: Path, start: number, end: number): Place[] {
  const between = path.points.filter((_, index) => (path.far[index] ?? 0) > start && (path.far[index] ?? 0) < end);
  return [pointAt(path, start), ...between, pointAt(path, end)];
}
