// The parts of ECharts that the console uses, in a separate chunk that is loaded with the first chart.
import { BarChart, CustomChart, LineChart, ParallelChart, ScatterChart } from "echarts/charts";
import { DataZoomComponent, GridComponent, LegendComponent, ToolboxComponent, MarkAreaComponent, MarkLineComponent, ParallelComponent, TooltipComponent } from "echarts/components";
import { init, registerCustomSeries, use as register } from "echarts/core";
import { CanvasRenderer, SVGRenderer } from "echarts/renderers";
import { drawIsolines } from "./isolines";
import { ISOLINES } from "./plot";

register([
  BarChart,
  CanvasRenderer,
  CustomChart,
  DataZoomComponent,
  GridComponent,
  LegendComponent,
  LineChart,
  MarkAreaComponent,
  MarkLineComponent,
  ParallelChart,
  ParallelComponent,
  ScatterChart,
  SVGRenderer,
  ToolboxComponent,
  TooltipComponent,
]);
registerCustomSeries(ISOLINES, drawIsolines);

export { init };
