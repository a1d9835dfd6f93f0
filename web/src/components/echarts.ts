// The parts of ECharts that the console draws with: a chunk of its own, loaded with the first chart.
import { LineChart, ScatterChart } from "echarts/charts";
import { GridComponent, LegendComponent, MarkLineComponent, TooltipComponent } from "echarts/components";
import { init, use as register } from "echarts/core";
import { CanvasRenderer } from "echarts/renderers";

register([CanvasRenderer, GridComponent, LegendComponent, LineChart, MarkLineComponent, ScatterChart, TooltipComponent]);

export { init };
