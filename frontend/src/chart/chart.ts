/** One live chart: title, legend with present values, lines over time (uPlot). */

import uPlot from 'uplot';
import { h, setText } from '../dom';
import { clock, text } from '../format';
import type { Device, Unit } from '../protocol';
import type { Store } from '../store';
import type { Colors } from '../theme';
import { readColors } from '../theme';
import type { Drawable, View } from './loop';
import type { Marks } from './marks';
import { drawMarks, marksAt } from './marks';
import { roundTop, tickLabels, timeTicks, valueTicks } from './scales';

export interface Line {
  readonly device: Device;
  readonly metric: string;
  readonly label: string;
  readonly unit: Unit;
}

export interface ChartSpec {
  readonly title: string;
  /** All of one unit. */
  readonly lines: readonly Line[];
  /** The end of the value axis, where it has a meaning (a total, a limit). */
  readonly top: number | null;
  /** A value to compare with, drawn dashed. */
  readonly limit?: { readonly label: string; readonly value: number };
  readonly height: number;
}

export interface ChartOptions {
  readonly store: Store;
  /** Charts with one key share the cursor. */
  readonly syncKey: string;
  readonly marks: Marks;
  /** Called with the span that a person has drawn over. */
  readonly onSelect?: (line: Line, fromMs: number, toMs: number) => void;
}

/** A person can't read digits that change ten times a second. */
const LEGEND_PERIOD_MS = 250;
const AXIS_FONT = '10px system-ui, sans-serif';
/** Nobody sees a chart move by less, and drawing is what costs. */
const LEAST_MOVE_PX = 0.5;
/** Half of a time of day in that font, less the chart's padding. */
const LABEL_PX = 16;
/** A drag shorter than this is a click. */
const SHORTEST_SELECTION_PX = 6;

export class Chart implements Drawable {
  readonly node: HTMLElement;

  constructor(
    private readonly spec: ChartSpec,
    private readonly options: ChartOptions
  ) {
    this.values = spec.lines.map(() => h('span', { class: 'wb-value' }));
    const legend = spec.lines.map((line, index) =>
      h(
        'li',
        {},
        h('span', { class: `wb-swatch wb-series-${index}` }),
        `${line.label} `,
        this.values[index] ?? ''
      )
    );
    const { limit } = spec;
    if (limit !== undefined) {
      const unit = this.unit;
      legend.push(
        h(
          'li',
          {},
          h('span', { class: 'wb-swatch wb-swatch-limit' }),
          `${limit.label} ${text(limit.value, unit)}`
        )
      );
    }
    const names = spec.lines.map(line => line.label).join(', ');
    this.plotNode = h('div', {
      class: 'wb-plot',
      role: 'img',
      'aria-label': `${spec.title} over time: ${names}`
    });
    this.plotNode.style.height = `${spec.height}px`;
    this.node = h(
      'section',
      { class: 'wb-tile', 'aria-label': spec.title },
      h(
        'header',
        { class: 'wb-tile-head' },
        h('h4', {}, spec.title),
        h('ul', { class: 'wb-legend' }, ...legend)
      ),
      this.plotNode
    );
    this.resizer.observe(this.plotNode);
  }

  draw(view: View): void {
    const width = this.plotNode.clientWidth;
    if (width === 0) {
      return;
    }
    this.writeLegend();
    const moved = (view.toMs - this.drawnMs) / (view.toMs - view.fromMs);
    if (this.plot && !view.anew && moved * width < LEAST_MOVE_PX) {
      return;
    }
    this.drawnMs = view.toMs;
    this.plot ??= this.makePlot(width);
    const [rows, highest] = this.rows(view);
    const { limit } = this.spec;
    this.top = this.spec.top ?? limit?.value ?? roundTop(highest, this.unit);
    // a limit is a line with room above it, not the end
    const max =
      limit === undefined ? this.top : Math.max(limit.value, highest) * 1.06;
    const plot = this.plot;
    plot.batch(() => {
      plot.setData([view.times, ...rows] as uPlot.AlignedData, false);
      plot.setScale('x', { min: view.fromMs, max: view.toMs });
      plot.setScale('y', { min: 0, max });
    });
  }

  /** Read the colours and the size again. */
  restyle(): void {
    this.plot?.destroy();
    this.plot = null;
    this.colors = null;
  }

  dispose(): void {
    this.resizer.disconnect();
    this.restyle();
  }

  /** Each line's visible values, breaks as null, and the highest of them. */
  private rows(view: View): [(number | null)[][], number] {
    let highest = 0;
    const rows = this.spec.lines.map(({ device, metric }) => {
      const column = this.options.store.column(
        device.id,
        metric,
        view.start,
        view.end
      );
      return view.times.map((_, row) => {
        const value = column?.[row] ?? NaN;
        if (Number.isNaN(value)) {
          return null;
        }
        highest = Math.max(highest, value);
        return value;
      });
    });
    return [rows, highest];
  }

  private writeLegend(): void {
    const now = performance.now();
    const at = this.plot?.cursor.idx ?? null;
    if (at === null && now - this.legendAt < LEGEND_PERIOD_MS) {
      return;
    }
    this.legendAt = now;
    this.spec.lines.forEach((line, index) => {
      const value =
        at === null
          ? this.options.store.value(line.device, line.metric)
          : this.plot?.data[index + 1]?.[at];
      const node = this.values[index];
      if (node !== undefined) {
        setText(node, text(value, line.unit));
      }
    });
  }

  private makePlot(width: number): uPlot {
    const { spec, options, plotNode } = this;
    const colors = (this.colors ??= readColors(this.node));
    const axis: uPlot.Axis = {
      stroke: colors.text,
      font: AXIS_FONT,
      grid: { stroke: colors.grid, width: 1 },
      ticks: { show: false }
    };
    const area = spec.lines.length === 1;
    const tip = h('div', { class: 'wb-tip', hidden: '' });
    const plot = new uPlot(
      {
        width,
        height: spec.height,
        ms: 1,
        padding: [7, 8, 0, 0],
        legend: { show: false },
        cursor: {
          y: false,
          sync: { key: options.syncKey, scales: ['x', null] },
          drag: {
            x: options.onSelect !== undefined,
            y: false,
            setScale: false
          },
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
              const room = (LABEL_PX / u.bbox.width) * devicePixelRatio;
              const end = max - (max - min) * room;
              return timeTicks(min, max, Math.max(2, u.width / 90)).filter(
                tick => tick <= end
              );
            },
            values: (_, ticks) => ticks.map(clock)
          },
          {
            ...axis,
            size: 54,
            gap: 4,
            splits: () => valueTicks(this.top),
            values: (_, ticks) => tickLabels(ticks, this.unit)
          }
        ],
        series: [
          {},
          ...spec.lines.map((_, index): uPlot.Series => {
            const color = colors.series[index % colors.series.length] ?? '';
            return {
              stroke: color,
              width: 1.5,
              points: { show: false },
              ...(area ? { fill: `${color}1f` } : {})
            };
          })
        ],
        hooks: {
          drawClear: [u => drawMarks(u, this.visibleMarks(u), colors)],
          draw: [u => this.drawLimit(u, colors)],
          setCursor: [u => this.hover(u, tip)],
          setSelect: [u => this.select(u)]
        }
      },
      [[], ...spec.lines.map(() => [])] as unknown as uPlot.AlignedData,
      plotNode
    );
    plot.over.append(tip);
    return plot;
  }

  private visibleMarks(u: uPlot) {
    const { min, max } = u.scales['x'] ?? {};
    return this.options.marks(min ?? 0, max ?? 0);
  }

  private drawLimit(u: uPlot, colors: Colors): void {
    const { limit } = this.spec;
    if (limit === undefined) {
      return;
    }
    const y = Math.round(u.valToPos(limit.value, 'y', true));
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

  /** Say what time is under the pointer, and which cells ran then. */
  private hover(u: uPlot, tip: HTMLElement): void {
    const left = u.cursor.left ?? -1;
    // a synchronised cursor has no event of its own
    if (left < 0 || !u.cursor.event) {
      tip.hidden = true;
      return;
    }
    const ms = u.posToVal(left, 'x');
    const labels = marksAt(this.visibleMarks(u), ms).slice(0, 4);
    const lines = [clock(ms), ...labels.map(mark => mark.label)];
    setText(tip, lines.join('\n'));
    tip.hidden = false;
    const right = left > u.over.clientWidth / 2;
    tip.style.left = right ? '' : `${left + 10}px`;
    tip.style.right = right ? `${u.over.clientWidth - left + 10}px` : '';
  }

  private select(u: uPlot): void {
    const { left, width } = u.select;
    const fromMs = u.posToVal(left, 'x');
    const toMs = u.posToVal(left + width, 'x');
    u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
    const line = this.spec.lines[0];
    // the other charts, whose selection goes along, have no event of their own
    if (width >= SHORTEST_SELECTION_PX && u.cursor.event && line) {
      this.options.onSelect?.(line, fromMs, toMs);
    }
  }

  private get unit(): Unit {
    return this.spec.lines[0]?.unit ?? 'count';
  }

  private readonly plotNode: HTMLElement;
  private readonly values: HTMLElement[];
  private plot: uPlot | null = null;
  private colors: Colors | null = null;
  private legendAt = 0;
  private drawnMs = 0;
  /** The highest tick of the value axis. */
  private top = 1;
  private readonly resizer = new ResizeObserver(() => {
    const width = this.plotNode.clientWidth;
    if (width > 0) {
      this.plot?.setSize({ width, height: this.spec.height });
    }
  });
}
