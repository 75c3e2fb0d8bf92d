/** How uPlot is set up for one of our charts; what it shows is in `chart.ts`. */

import uPlot from 'uplot';
import type { Unit } from '../shapes/protocol';
import type { Colors } from '../core/theme';
import { tickLabels, ticksFor, timeLabels, valueTicks } from './scales';

const AXIS_FONT = '10px system-ui, sans-serif';
/** Half of a time of day in that font, less the chart's padding. */
const LABEL_PX = 16;

export interface PlotOptions {
  readonly width: number;
  readonly height: number;
  readonly colors: Colors;
  readonly unit: Unit;
  readonly lines: number;
  /** Charts with one key share the cursor. */
  readonly syncKey: string;
  readonly canDrag: boolean;
  /** The highest tick of the value axis. */
  top(): number;
  readonly hooks: uPlot.Hooks.Arrays;
}

/** Make the plot, without data. */
export function makePlot(place: HTMLElement, options: PlotOptions): uPlot {
  const { colors, lines, unit } = options;
  const axis: uPlot.Axis = {
    stroke: colors.text,
    font: AXIS_FONT,
    grid: { stroke: colors.grid, width: 1 },
    ticks: { show: false }
  };
  const series = Array.from({ length: lines }, (_, index): uPlot.Series => {
    const color = lineColor(colors, index);
    return {
      stroke: color,
      width: 1.5,
      points: { show: false },
      ...(lines === 1 ? { fill: `${color}1f` } : {})
    };
  });
  return new uPlot(
    {
      width: options.width,
      height: options.height,
      ms: 1,
      padding: [7, 8, 0, 0],
      legend: { show: false },
      cursor: {
        y: false,
        sync: { key: options.syncKey, scales: ['x', null] },
        drag: { x: options.canDrag, y: false, setScale: false },
        // a double click would ask uPlot for a scale that the draw loop owns
        bind: { dblclick: () => null },
        points: { size: 5 }
      },
      scales: {
        x: { time: true, auto: false },
        y: { auto: false }
      },
      axes: [
        {
          ...axis,
          size: 22,
          gap: 6,
          splits: (u, _, min, max) => {
            // the last label must not run out of the chart
            const widthPx = u.bbox.width / devicePixelRatio;
            const end = max - ((max - min) * LABEL_PX) / widthPx;
            return ticksFor(min, max, widthPx).filter(tick => tick <= end);
          },
          values: (_, ticks) => timeLabels(ticks)
        },
        {
          ...axis,
          size: 54,
          gap: 4,
          splits: () => valueTicks(options.top()),
          values: (_, ticks) => tickLabels(ticks, unit)
        }
      ],
      series: [{}, ...series],
      hooks: options.hooks
    },
    [[], ...series.map(() => [])] as unknown as uPlot.AlignedData,
    place
  );
}

/** The colour of a line, here and in the legend. */
export function lineColor(colors: Colors, index: number): string {
  return colors.series[index % colors.series.length] ?? '';
}

/** Draw a value to compare with, dashed. */
export function drawLimit(u: uPlot, value: number, colors: Colors): void {
  const y = Math.round(u.valToPos(value, 'y', true));
  const { ctx } = u;
  ctx.save();
  ctx.strokeStyle = colors.text;
  ctx.setLineDash([4 * devicePixelRatio, 3 * devicePixelRatio]);
  ctx.lineWidth = devicePixelRatio;
  ctx.beginPath();
  ctx.moveTo(u.bbox.left, y);
  ctx.lineTo(u.bbox.left + u.bbox.width, y);
  ctx.stroke();
  ctx.restore();
}
