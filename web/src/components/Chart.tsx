import { t } from "@lingui/core/macro";
import type { EChartsOption } from "echarts";
import type { EChartsType } from "echarts/core";
import { Maximize, ZoomIn } from "lucide-react";
import { createContext, useContext, useEffect, useRef, useState, type ReactNode } from "react";
import { saveAddress, saveText } from "@/lib/browser";
import { Button } from "./Button";
import styles from "./Chart.module.css";
import { usePalette, type Palette } from "./palette";
import { zoomable, zoomedOf, type Zoomed } from "./plot";
import { inTurn } from "./turns";

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
  /** Whether a box, the wheel and dragging zoom both axes; false for a plot without two axes. */
  zooms?: boolean;
  /** Called when the shown parts of the axes change. Must be the same function while nothing changes. */
  onZoom?: ((zoomed: Zoomed) => void) | undefined;
  /** Called when the shown interval of the first axis changes. Must be the same function while nothing changes. */
  onRange?: ((from: number, to: number) => void) | undefined;
}

// The cursor of ECharts that draws a box.
// eslint-disable-next-line lingui/no-unlocalized-strings -- a name in ECharts
const DATA_ZOOM = "dataZoomSelect";

/** Whether charts are drawn for print: as SVG in light colours, whatever the theme. */
export const OnPaper = createContext(false);

/** A chart in the page's colours, as wide as its container. */
export function Chart({ label, height, option, name, zooms = false, onPick, onZoom, onRange }: Props) {
  const place = useRef<HTMLDivElement>(null);
  const [chart, setChart] = useState<EChartsType | null>(null);
  const onPaper = useContext(OnPaper);
  const palette = usePalette(onPaper);

  useEffect(() => {
    const element = place.current;
    if (element === null) return;
    let made: EChartsType | null = null;
    const life: { over: boolean; leave?: () => void } = { over: false };
    const observer = new ResizeObserver(() => made?.resize());
    void import("./echarts").then(({ init }) => {
      if (life.over) return;
      life.leave = inTurn(() => {
        made = init(element, null, { renderer: onPaper ? "svg" : "canvas" });
        observer.observe(element);
        setChart(made);
      });
    });
    return () => {
      life.over = true;
      life.leave?.();
      observer.disconnect();
      made?.dispose();
      setChart(null);
    };
  }, [onPaper]);

  const [boxed, setBoxed] = useState(false);
  const mayZoom = zooms && !onPaper;
  useEffect(() => {
    if (chart === null) return;
    // The plots of a page are drawn one after another, so that the page answers in between.
    return inTurn(() => chart.setOption(mayZoom ? zoomable(option(palette), palette) : option(palette), { replaceMerge: ["series", "grid", "xAxis", "yAxis", "parallel", "parallelAxis"] }));
  }, [chart, option, palette, mayZoom]);

  useEffect(() => {
    if (chart === null || onPick === undefined) return;
    const handle = (event: { data?: unknown }) => onPick(event.data);
    chart.on("click", handle);
    return () => {
      if (!chart.isDisposed()) chart.off("click", handle);
    };
  }, [chart, onPick]);

  // While the box is armed, dragging draws it. Otherwise dragging moves the plot.
  useEffect(() => {
    if (chart !== null && mayZoom) chart.dispatchAction({ type: "takeGlobalCursor", key: DATA_ZOOM, dataZoomSelectActive: boxed });
  }, [chart, mayZoom, boxed]);
  useEffect(() => {
    if (chart === null || onZoom === undefined) return;
    const handle = () => {
      setBoxed(false);
      onZoom(zoomedOf((chart.getOption() as { dataZoom?: Interval[] }).dataZoom ?? []));
    };
    chart.on("datazoom", handle);
    return () => {
      if (!chart.isDisposed()) chart.off("datazoom", handle);
    };
  }, [chart, onZoom]);
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

  function reset() {
    const zoomed = (chart?.getOption() as { dataZoom?: unknown[] } | undefined)?.dataZoom ?? [];
    chart?.dispatchAction({ type: "dataZoom", batch: zoomed.map((_, dataZoomIndex) => ({ dataZoomIndex, start: 0, end: 100 })) });
  }
  function savePng(file: string) {
    const address = chart?.getDataURL({ type: "png", pixelRatio: 2, backgroundColor: palette.surface });
    // eslint-disable-next-line lingui/no-unlocalized-strings -- the name of a file
    if (address !== undefined) saveAddress(`${file}.png`, address);
  }
  return (
    <div className={styles.frame}>
      <div ref={place} role="img" aria-label={label} style={{ height }} />
      {name === undefined || onPaper ? null : (
        <div className={styles.save} role="group" aria-label={t`Plot ${name}`}>
          {mayZoom ? (
            <>
              <Button small kind="quiet" aria-pressed={boxed} aria-label={t`Zoom into a box`} title={t`Zoom into a box: drag on the plot. Ctrl and the wheel zoom, dragging moves.`} onClick={() => setBoxed(!boxed)}>
                <ZoomIn />
              </Button>
              <Button small kind="quiet" aria-label={t`Show all of the plot`} title={t`Show all of the plot`} onClick={reset}>
                <Maximize />
              </Button>
            </>
          ) : null}
          <Button small kind="quiet" aria-label={t`Save as PNG: ${name}`} title={t`Save the plot as PNG`} onClick={() => savePng(name)}>
            PNG
          </Button>
          <Button small kind="quiet" aria-label={t`Save as SVG: ${name}`} title={t`Save the plot as SVG`} onClick={() => void save(name)}>
            SVG
          </Button>
        </div>
      )}
    </div>
  );
}

interface Interval {
  xAxisIndex?: number | number[] | undefined;
  yAxisIndex?: number | number[] | undefined;
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

/** An item of a legend: a button that hides and shows its marks. */
export function LegendItem({ look, text, hidden, onToggle }: { look: string | undefined; text: string; hidden: boolean; onToggle: () => void }) {
  return (
    <li>
      <button type="button" className={hidden ? `${styles.item} ${styles.hidden}` : styles.item} aria-pressed={!hidden} onClick={onToggle}>
        <span className={look} aria-hidden="true" />
        {text}
      </button>
    </li>
  );
}

/** The legend of a plot, with an item for each kind of mark. */
export function Legend({ children }: { children: ReactNode }) {
  return <ul className={styles.legend}>{children}</ul>;
}
