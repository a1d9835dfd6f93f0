import { useMemo } from "react";
import { useIsDark } from "@/lib/theme";

/** The colours of the page that charts draw with. */
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
  /** Distinct for every kind of colour vision. */
  series: readonly string[];
  /** From low to high. */
  scale: readonly string[];
}

/** Return the colours of the current theme; on paper, the light ones. */
export function usePalette(onPaper: boolean): Palette {
  const dark = useIsDark() && !onPaper;
  return useMemo(() => paletteOf(dark), [dark]);
}

const palettes = new Map<boolean, Palette>();

function paletteOf(dark: boolean): Palette {
  const palette = palettes.get(dark) ?? readPalette(dark);
  palettes.set(dark, palette);
  return palette;
}

/** Return the colours in a form that a canvas accepts: it supports neither variables nor light-dark(). */
function readPalette(dark: boolean): Palette {
  const probe = document.createElement("span");
  probe.style.colorScheme = dark ? "dark" : "light";
  document.body.append(probe);
  const read = (name: string) => {
    probe.style.color = `var(--${name})`;
    return getComputedStyle(probe).color;
  };
  const palette = {
    // ECharts writes it between double quotes into an SVG's attributes.
    font: getComputedStyle(document.body).fontFamily.replaceAll('"', "'"),
    text: read("text"),
    soft: read("soft"),
    line: read("line"),
    surface: read("surface"),
    accent: read("accent"),
    good: read("good"),
    warn: read("warn"),
    bad: read("bad"),
    info: read("info"),
    series: [1, 2, 3, 4, 5, 6].map((number) => read(`series-${number}`)),
    scale: [1, 2, 3, 4, 5].map((number) => read(`scale-${number}`)),
  };
  probe.remove();
  return palette;
}
