import type { EChartsOption } from "echarts";
import type { EChartsType } from "echarts/core";
import { useEffect, useMemo, useRef, useState } from "react";
import { useIsDark } from "@/lib/theme";

export interface Palette {
  font: string;
  text: string;
  soft: string;
  line: string;
  surface: string;
  accent: string;
  good: string;
  warn: string;
  bad: string;
  info: string;
}

interface Props {
  /** What the chart shows, in words, for those who cannot see it. */
  label: string;
  height: number;
  /** Keep it the same function while nothing changes. */
  option: (palette: Palette) => EChartsOption;
  /** A mark was pressed; its data item. */
  onPick?: (data: unknown) => void;
}

/** A chart in the page's colours, as wide as its place. */
export function Chart({ label, height, option, onPick }: Props) {
  const place = useRef<HTMLDivElement>(null);
  const [chart, setChart] = useState<EChartsType | null>(null);
  const palette = usePalette();

  useEffect(() => {
    const element = place.current;
    if (element === null) return;
    const life = { over: false };
    let made: EChartsType | null = null;
    const observer = new ResizeObserver(() => made?.resize());
    void import("./echarts").then(({ init }) => {
      if (life.over) return;
      made = init(element);
      observer.observe(element);
      setChart(made);
    });
    return () => {
      life.over = true;
      observer.disconnect();
      made?.dispose();
      setChart(null);
    };
  }, []);

  useEffect(() => chart?.setOption(option(palette), { replaceMerge: ["series", "yAxis"] }), [chart, option, palette]);

  useEffect(() => {
    if (chart === null || onPick === undefined) return;
    const handle = (event: { data?: unknown }) => onPick(event.data);
    chart.on("click", handle);
    return () => {
      if (!chart.isDisposed()) chart.off("click", handle);
    };
  }, [chart, onPick]);

  return <div ref={place} role="img" aria-label={label} style={{ height }} />;
}

function usePalette(): Palette {
  const dark = useIsDark();
  return useMemo(() => paletteOf(dark), [dark]);
}

const palettes = new Map<boolean, Palette>();

/** The page's colours as it is shown now. */
function paletteOf(dark: boolean): Palette {
  const palette = palettes.get(dark) ?? readPalette();
  palettes.set(dark, palette);
  return palette;
}

/** Colours as a canvas understands them: it knows neither variables nor light-dark(). */
function readPalette(): Palette {
  const probe = document.createElement("span");
  document.body.append(probe);
  const read = (name: string) => {
    probe.style.color = `var(--${name})`;
    return getComputedStyle(probe).color;
  };
  const palette = {
    font: getComputedStyle(document.body).fontFamily,
    text: read("text"),
    soft: read("soft"),
    line: read("line"),
    surface: read("surface"),
    accent: read("accent"),
    good: read("good"),
    warn: read("warn"),
    bad: read("bad"),
    info: read("info"),
  };
  probe.remove();
  return palette;
}
