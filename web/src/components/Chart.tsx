import { t } from "@lingui/core/macro";
import type { EChartsOption } from "echarts";
import type { EChartsType } from "echarts/core";
import { createContext, useContext, useEffect, useRef, useState, type ReactNode } from "react";
import { saveText } from "@/lib/browser";
import { Button } from "./Button";
import styles from "./Chart.module.css";
import { usePalette, type Palette } from "./palette";

interface Props {
  /** A description of the chart, for screen readers. */
  label: string;
  height: number;
  /** Must be the same function while nothing changes. */
  option: (palette: Palette) => EChartsOption;
  /** The name of the file that the plot is saved as. Without a name the chart cannot be saved. */
  name?: string | undefined;
  /** Called with the data item of a clicked mark. */
  onPick?: ((data: unknown) => void) | undefined;
  /** Called when the shown interval of the first axis changes. Must be the same function while nothing changes. */
  onRange?: ((from: number, to: number) => void) | undefined;
}

/** Whether charts are drawn for print: as SVG in light colours, whatever the theme. */
export const OnPaper = createContext(false);

/** A chart in the page's colours, as wide as its container. */
export function Chart({ label, height, option, name, onPick, onRange }: Props) {
  const place = useRef<HTMLDivElement>(null);
  const [chart, setChart] = useState<EChartsType | null>(null);
  const onPaper = useContext(OnPaper);
  const palette = usePalette(onPaper);

  useEffect(() => {
    const element = place.current;
    if (element === null) return;
    const life = { over: false };
    let made: EChartsType | null = null;
    const observer = new ResizeObserver(() => made?.resize());
    void import("./echarts").then(({ init }) => {
      if (life.over) return;
      made = init(element, null, { renderer: onPaper ? "svg" : "canvas" });
      observer.observe(element);
      setChart(made);
    });
    return () => {
      life.over = true;
      observer.disconnect();
      made?.dispose();
      setChart(null);
    };
  }, [onPaper]);

  useEffect(
    () => chart?.setOption(option(palette), { replaceMerge: ["series", "grid", "xAxis", "yAxis", "parallel", "parallelAxis"] }),
    [chart, option, palette],
  );

  useEffect(() => {
    if (chart === null || onPick === undefined) return;
    const handle = (event: { data?: unknown }) => onPick(event.data);
    chart.on("click", handle);
    return () => {
      if (!chart.isDisposed()) chart.off("click", handle);
    };
  }, [chart, onPick]);

  useEffect(() => {
    if (chart === null || onRange === undefined) return;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const handle = () => {
      clearTimeout(timer);
      timer = setTimeout(() => {
        const { startValue, endValue } = intervals(chart)[0] ?? {};
        if (startValue !== undefined && endValue !== undefined) onRange(startValue, endValue);
      }, 250);
    };
    chart.on("datazoom", handle);
    return () => {
      clearTimeout(timer);
      if (!chart.isDisposed()) chart.off("datazoom", handle);
    };
  }, [chart, onRange]);

  async function save(file: string) {
    const { init } = await import("./echarts");
    const width = place.current?.clientWidth ?? 900;
    const drawn = init(null, null, { renderer: "svg", ssr: true, width, height });
    drawn.setOption({ ...option(palette), backgroundColor: palette.surface, animation: false });
    const shown = chart === null ? [] : intervals(chart);
    if (shown.length > 0) drawn.setOption({ dataZoom: shown });
    saveText(`${file}.svg`, "image/svg+xml", drawn.renderToSVGString());
    drawn.dispose();
  }

  return (
    <div className={styles.frame}>
      <div ref={place} role="img" aria-label={label} style={{ height }} />
      {name === undefined || onPaper ? null : (
        <Button small kind="quiet" className={styles.save} aria-label={t`Save as SVG: ${name}`} title={t`Save the plot as SVG`} onClick={() => void save(name)}>
          SVG
        </Button>
      )}
    </div>
  );
}

interface Interval {
  start?: number | undefined;
  end?: number | undefined;
  startValue?: number | undefined;
  endValue?: number | undefined;
}

/** Return the shown interval of each data zoom of a chart. */
function intervals(chart: EChartsType): Interval[] {
  const { dataZoom = [] } = chart.getOption() as { dataZoom?: Interval[] };
  return dataZoom.map(({ start, end, startValue, endValue }) => ({ start, end, startValue, endValue }));
}

/** The legend of a plot, with an item for each kind of mark. */
export function Legend({ children }: { children: ReactNode }) {
  return <ul className={styles.legend}>{children}</ul>;
}
