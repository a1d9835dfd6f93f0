import type { CustomSeriesRenderItem, EChartsOption } from "echarts";
import type { IsolinePayload } from "./isolines";
import type { Palette } from "./palette";

/** Return the options that all charts share: font, colours, and a tooltip of plain text, since users choose units and names. */
export function frame(palette: Palette) {
  return {
    animation: false,
    textStyle: { fontFamily: palette.font, color: palette.text },
    tooltip: {
      trigger: "item" as const,
      renderMode: "richText" as const,
      confine: true,
      backgroundColor: palette.surface,
      borderColor: palette.line,
      textStyle: { color: palette.text, fontSize: 13 },
    },
  };
}

/** Return an axis in the page's colours. */
export function axis(palette: Palette) {
  return {
    axisLine: { lineStyle: { color: palette.line } },
    axisTick: { show: false },
    splitLine: { lineStyle: { color: palette.line } },
    nameTextStyle: { color: palette.soft, fontSize: 12 },
    axisLabel: { color: palette.soft, fontSize: 12, hideOverlap: true },
  };
}

/** Return an axis of numbers, formatted by `format`. */
export function scaleAxis(palette: Palette, format: (value: number) => string) {
  const plain = axis(palette);
  return { ...plain, axisLabel: { ...plain.axisLabel, formatter: format } };
}

type Axes = Pick<EChartsOption, "xAxis" | "yAxis" | "dataZoom" | "tooltip">;

/** Return the option of a plot with axes, to which a box, Ctrl and the wheel, and dragging give a zoom of both axes. */
export function zoomable<T extends Axes>(option: T, palette: Palette): T & Pick<EChartsOption, "dataZoom" | "toolbox"> {
  const given = option.dataZoom === undefined ? [] : [option.dataZoom].flat();
  const inside = { type: "inside" as const, filterMode: "none" as const, zoomOnMouseWheel: "ctrl" as const, moveOnMouseMove: true, throttle: 40 };
  const across = given.length > 0 ? [] : [{ ...inside, id: "across", xAxisIndex: 0 }];
  return {
    ...option,
    dataZoom: [...given, ...across, { ...inside, id: "along", yAxisIndex: 0 }],
    // Its own buttons are outside of the plot; the frame of the chart has buttons for the keyboard.
    toolbox: {
      left: -100,
      itemSize: 1,
      feature: { dataZoom: { filterMode: "none", yAxisIndex: 0, brushStyle: { borderWidth: 1, color: "rgb(128 150 160 / 22%)", borderColor: palette.accent } } },
    },
    tooltip: { ...[option.tooltip].flat()[0], axisPointer: { type: "cross", label: { show: false }, crossStyle: { color: palette.soft } } },
  };
}

/** The parts of the axes that a plot shows; null: all of the axis. */
export interface Zoomed {
  x: [number, number] | null;
  y: [number, number] | null;
}

interface Interval {
  start?: number | undefined;
  end?: number | undefined;
  startValue?: number | undefined;
  endValue?: number | undefined;
  xAxisIndex?: number | number[] | undefined;
  yAxisIndex?: number | number[] | undefined;
}

/** Return the parts of the first axes that the data zooms of an option show. */
export function zoomedOf(zooms: readonly Interval[]): Zoomed {
  const part = (key: "xAxisIndex" | "yAxisIndex"): [number, number] | null => {
    const own = zooms.filter((one) => [one[key] ?? []].flat().includes(0) && !((one.start ?? 0) <= 0 && (one.end ?? 100) >= 100));
    const { startValue, endValue } = own.at(-1) ?? {};
    return startValue === undefined || endValue === undefined ? null : [startValue, endValue];
  };
  return { x: part("xAxisIndex"), y: part("yAxisIndex") };
}

/** Return the controls that zoom the first axes: a slider below the plot, Ctrl and the wheel, and dragging, which moves. */
export function zoom(palette: Palette, xAxisIndex = [0]) {
  const common = { xAxisIndex, filterMode: "none" as const };
  return [
    // The wheel alone scrolls the page.
    { ...common, type: "inside" as const, zoomOnMouseWheel: "ctrl" as const, moveOnMouseMove: true, throttle: 40 },
    {
      ...common,
      type: "slider" as const,
      height: 16,
      bottom: 4,
      showDetail: false,
      brushSelect: false,
      moveHandleSize: 0,
      borderColor: palette.line,
      fillerColor: "rgb(128 150 160 / 22%)",
      dataBackground: { lineStyle: { color: palette.line }, areaStyle: { color: palette.line } },
      selectedDataBackground: { lineStyle: { color: palette.soft, opacity: 0.5 }, areaStyle: { color: palette.soft, opacity: 0.2 } },
      handleStyle: { color: palette.surface, borderColor: palette.soft },
    },
  ];
}

interface Whisker {
  coord: (point: [number, number]) => [number, number];
  value: (dimension: number) => number;
}

/** Return a renderer of whiskers for data [position, low, high]. `across`: horizontal; `shift`: an offset in pixels. */
export function whisker(color: string, across = false, shift = 0) {
  return (_: unknown, raw: unknown) => {
    const api = raw as Whisker;
    const [position, low, high] = [api.value(0), api.value(1), api.value(2)];
    const ends = across ? [api.coord([low, position]), api.coord([high, position])] : [api.coord([position, low]), api.coord([position, high])];
    const [a, b] = ends.map(([x, y]) => (across ? [x, y + shift] : [x + shift, y])) as [[number, number], [number, number]];
    const cap = ([x, y]: [number, number]) => (across ? { x1: x, y1: y - 4, x2: x, y2: y + 4 } : { x1: x - 4, y1: y, x2: x + 4, y2: y });
    return {
      type: "group" as const,
      silent: true,
      children: [{ x1: a[0], y1: a[1], x2: b[0], y2: b[1] }, cap(a), cap(b)].map((shape) => ({
        type: "line" as const,
        shape,
        style: { stroke: color, lineWidth: 1.5 },
      })),
    };
  };
}

/** The name under which `echarts.ts` registers the renderer of isolines. */
export const ISOLINES = "trimtab-isolines";

/** Return a series of labelled lines of equal value on a grid. */
export function isolines(payload: IsolinePayload) {
  return {
    type: "custom" as const,
    silent: true,
    // One item draws all lines. ECharts' types do not know renderers that are registered by name.
    data: [[0, 0]],
    renderItem: ISOLINES as unknown as CustomSeriesRenderItem,
    itemPayload: { ...payload },
  };
}

/** Return the colour at a position (0 to 1) of a scale. */
export function shade(scale: readonly string[], share: number): string {
  const place = Math.min(Math.max(share, 0), 1) * (scale.length - 1);
  const low = Math.min(Math.floor(place), scale.length - 2);
  const [from, to] = [numbers(scale[low] ?? ""), numbers(scale[low + 1] ?? "")];
  return `rgb(${from.map((one, index) => Math.round(one + ((to[index] ?? one) - one) * (place - low))).join(", ")})`;
}

function numbers(color: string): number[] {
  return (color.match(/[\d.]+/g) ?? []).slice(0, 3).map(Number);
}
