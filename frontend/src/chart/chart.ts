/** One chart: title, legend with present values, lines over time, what is pointed at. */

import type uPlot from 'uplot';
import { h, setText } from '../core/dom';
import { clock, text } from '../core/format';
import type { Device, MemoryOutlook, Unit } from '../shapes/protocol';
import type { Store } from '../core/store';
import type { Colors } from '../core/theme';
import { readColors } from '../core/theme';
import { Forecast } from './forecast';
import type { Gestures } from './gestures';
import { dragged, listenToClicks, listenToWheel } from './gestures';
import type { HiddenLines } from './legend';
import { hiddenOnPage, Legend } from './legend';
import type { Drawable, View } from './loop';
import type { Mark, Marks } from './marks';
import { drawMarks, marksAt } from './marks';
import { drawLimit, lineColor, makePlot } from './plot';
import { Reader } from './reader';
import type { Samples, Column } from './samples';
import { roundTop } from './scales';

export interface Line {
  readonly device: Device;
  readonly metric: string;
  readonly label: string;
  readonly unit: Unit;
}

export interface ChartSpec {
  readonly title: string;
  /** All of one device and of one unit. */
  readonly lines: readonly Line[];
  /** The end of the value axis, where it has a meaning (a total, a limit). */
  readonly top: number | null;
  /** A value to compare with, drawn dashed. */
  readonly limit?: { readonly label: string; readonly value: number };
  readonly height: number;
  /** Whether its line is the memory that is forecast. */
  readonly hasForecast?: boolean;
  /** Whether it takes two places where there are three in a row. */
  readonly isWide?: boolean;
}

export interface ChartOptions {
  readonly store: Store;
  /** Charts with one key share the cursor. */
  readonly syncKey: string;
  readonly marks: Marks;
  /** Without it, charts can only be read. */
  readonly gestures?: Gestures;
  /** Where the memory of the GPU is heading. */
  readonly forecast?: () => MemoryOutlook | null;
  /** Which lines are hidden; without it, the chart itself remembers. */
  readonly hidden?: HiddenLines;
  /** What stands beside the legend. */
  readonly buttons?: (chart: Chart) => Node[];
}

/** A person can't read digits that change ten times a second. */
const LEGEND_PERIOD_MS = 250;
/** In pixels of the screen: nobody sees a chart move by less, and drawing costs. */
const LEAST_MOVE_PX = 0.9;

export class Chart implements Drawable {
  readonly node: HTMLElement;

  constructor(
    readonly spec: ChartSpec,
    private readonly options: ChartOptions
  ) {
    this.forecast = new Forecast(
      spec.hasForecast ? options.forecast : undefined
    );
    this.legend = new Legend(spec, options.hidden ?? hiddenOnPage());
    this.plotNode = h('div', {
      class: 'wb-plot',
      role: 'group',
      'aria-roledescription': 'chart',
      tabindex: '0',
      focus: () => this.describe(),
      blur: () => this.reader.stop(),
      keydown: event => this.reader.key(event as KeyboardEvent)
    });
    this.plotNode.style.height = `${spec.height}px`;
    this.node = h(
      'section',
      {
        class: spec.isWide ? 'wb-tile wb-tile-wide' : 'wb-tile',
        'aria-label': spec.title
      },
      h(
        'header',
        { class: 'wb-tile-head' },
        h('h4', {}, spec.title),
        this.legend.node,
        ...(options.buttons?.(this) ?? [])
      ),
      this.plotNode
    );
    this.reader = new Reader(
      options.gestures ?? null,
      () => {
        const { plot, view } = this;
        return plot === null || view === null ? null : { plot, span: view };
      },
      ms => this.openAt(ms)
    );
    this.describe();
    this.resizer.observe(this.plotNode);
  }

  draw(view: View): void {
    // to ask for it between two writes would lay the page out for each chart
    const width = this.widthPx || this.plotNode.clientWidth;
    if (width === 0) {
      return;
    }
    const drawnMs = this.view?.toMs ?? 0;
    const moved = (view.toMs - drawnMs) / (view.toMs - view.fromMs);
    const movedPx = moved * width * devicePixelRatio;
    if (this.plot && !view.anew && movedPx < LEAST_MOVE_PX) {
      return;
    }
    this.view = view;
    this.plot ??= this.makePlot(width);
    const [device] = this.spec.lines;
    const samples = view.samples(
      device?.device.id ?? '',
      this.spec.lines.map(({ metric }) => metric)
    );
    const [rows, highest] = this.rows(samples);
    this.forecast.update(view, view.following);
    const { limit } = this.spec;
    this.top = this.spec.top ?? limit?.value ?? roundTop(highest, this.unit);
    // a limit is a line with room above it, not the end
    const max =
      limit === undefined ? this.top : Math.max(limit.value, highest) * 1.06;
    const plot = this.plot;
    plot.batch(() => {
      plot.setData([samples.times, ...rows] as uPlot.AlignedData, false);
      plot.setScale('x', { min: view.fromMs, max: this.forecast.endMs });
      plot.setScale('y', { min: 0, max });
    });
  }

  /** Write the values under the cursor; else those of now, or of a held view's end. */
  write(view: View): void {
    if (this.plot === null) {
      return;
    }
    this.reader.point();
    this.plotNode.dataset['empty'] =
      this.shown.length === 0 ? 'hidden' : String(this.isEmpty);
    const now = performance.now();
    const at = this.plot.cursor.idx ?? null;
    if (at === null && !view.anew && now - this.legendAt < LEGEND_PERIOD_MS) {
      return;
    }
    this.legendAt = now;
    this.spec.lines.forEach((line, index) =>
      this.legend.write(index, text(this.valueAt(index, at, view), line.unit))
    );
    this.legend.update();
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

  /** Each line's values, breaks as null, and the highest of them. */
  private rows(samples: Samples): [(number | null)[][], number] {
    const { times } = samples;
    let highest = 0;
    let readings = 0;
    const colors = (this.colors ??= readColors(this.node));
    this.envelopes = [];
    const rows = this.spec.lines.map(({ metric }, index) => {
      const values = this.legend.isHidden(index)
        ? null
        : samples.column(metric);
      const range = values?.range ?? null;
      if (range !== null) {
        const color = lineColor(colors, index);
        this.envelopes.push({ color, times, range });
      }
      return times.map((_, row) => {
        const value = values?.mean[row] ?? NaN;
        if (Number.isNaN(value)) {
          return null;
        }
        readings += 1;
        highest = Math.max(highest, range?.most[row] ?? value);
        return value;
      });
    });
    this.isEmpty = readings === 0;
    return [rows, highest];
  }

  private valueAt(
    index: number,
    at: number | null,
    { following }: View
  ): number | null {
    const line = this.spec.lines[index];
    if (at === null && following && line !== undefined) {
      return this.options.store.value(line.device, line.metric);
    }
    const row = this.plot?.data[index + 1];
    return row?.[at ?? row.length - 1] ?? null;
  }

  /** Tell in words what a sighted person sees at a glance. */
  private describe(): void {
    const { view } = this;
    const values = this.shown.map(([line, index]) => {
      const value = view === null ? null : this.valueAt(index, null, view);
      return `${line.label} ${text(value, line.unit)}`;
    });
    const when =
      view === null || view.following ? 'now' : `at ${clock(view.toMs)}`;
    this.plotNode.setAttribute(
      'aria-label',
      `${this.spec.title} over time; ${when}: ${values.join(', ')}. ` +
        `${this.forecast.words}Left and right arrows read single values.`
    );
  }

  private makePlot(width: number): uPlot {
    const { spec, options } = this;
    const { gestures } = options;
    const colors = (this.colors ??= readColors(this.node));
    const tip = h('div', { class: 'wb-tip', role: 'status' });
    const plot = makePlot(this.plotNode, {
      width,
      height: this.plotNode.clientHeight,
      colors,
      unit: this.unit,
      lines: spec.lines.length,
      syncKey: options.syncKey,
      canDrag: gestures !== undefined,
      top: () => this.top,
      hooks: {
        drawClear: [
          u => {
            drawMarks(u, this.visibleMarks(u), colors);
            drawEnvelopes(u, this.envelopes);
          }
        ],
        draw: [
          u => spec.limit && drawLimit(u, spec.limit.value, colors),
          u => this.forecast.draw(u, lineColor(colors, 0))
        ],
        setCursor: [u => this.hover(u, tip)],
        setSelect: [u => gestures && dragged(u, gestures)]
      }
    });
    plot.over.append(tip);
    if (gestures !== undefined) {
      listenToWheel(plot.over, gestures);
      listenToClicks(plot, ms => this.openAt(ms));
    }
    return plot;
  }

  private visibleMarks(u: uPlot): readonly Mark[] {
    const { min, max } = u.scales['x'] ?? {};
    return this.options.marks(min ?? 0, max ?? 0);
  }

  /** Show what the cell that ran at this time has to show. */
  private openAt(ms: number): void {
    const marks = this.plot === null ? [] : this.visibleMarks(this.plot);
    marksAt(marks, ms)
      .find(({ open }) => open)
      ?.open?.();
  }

  /** Say what is under the pointer: the time, the values, the cells that ran. */
  private hover(u: uPlot, tip: HTMLElement): void {
    const left = u.cursor.left ?? -1;
    // a synchronised cursor has no event of its own
    if (left < 0 || !(u.cursor.event || this.reader.isReading)) {
      setText(tip, '');
      return;
    }
    const index = u.cursor.idx ?? null;
    const ms = u.posToVal(left, 'x');
    const labels = marksAt(this.visibleMarks(u), ms).slice(0, 4);
    const sampleMs = index === null ? ms : (u.data[0][index] ?? ms);
    const lines = [
      clock(sampleMs),
      ...this.shown.map(([line, at]) => {
        const value = text(u.data[at + 1]?.[index ?? -1], line.unit);
        return `${line.label} ${value}${this.rangeAt(at, index)}`;
      }),
      ...labels.map(mark => mark.label)
    ];
    setText(tip, lines.join('\n'));
    u.over.style.cursor = labels.some(({ open }) => open) ? 'pointer' : '';
    const right = left > u.over.clientWidth / 2;
    tip.style.left = right ? '' : `${left + 10}px`;
    tip.style.right = right ? `${u.over.clientWidth - left + 10}px` : '';
  }

  /** Between what a sample that sums up others lay, in words, if it varied. */
  private rangeAt(line: number, index: number | null): string {
    const range = this.envelopes[line]?.range;
    if (range === undefined || index === null) {
      return '';
    }
    const least = text(range.least[index], this.unit);
    const most = text(range.most[index], this.unit);
    return least === most ? '' : ` (${least} to ${most})`;
  }

  /** The lines that are not hidden, each with its place. */
  private get shown(): [Line, number][] {
    return this.spec.lines
      .map((line, index): [Line, number] => [line, index])
      .filter(([, index]) => !this.legend.isHidden(index));
  }

  private get unit(): Unit {
    return this.spec.lines[0]?.unit ?? 'count';
  }

  private readonly plotNode: HTMLElement;
  private readonly legend: Legend;
  private readonly reader: Reader;
  private plot: uPlot | null = null;
  private colors: Colors | null = null;
  private readonly forecast: Forecast;
  private view: View | null = null;
  private envelopes: Envelope[] = [];
  /** Whether no line has a reading here. */
  private isEmpty = false;
  private legendAt = 0;
  /** The highest tick of the value axis. */
  private top = 1;
  private widthPx = 0;
  private readonly resizer = new ResizeObserver(() => {
    const { clientWidth: width, clientHeight: height } = this.plotNode;
    this.widthPx = width;
    if (width > 0) {
      this.plot?.setSize({ width, height });
    }
  });
}

export interface Envelope {
  readonly color: string;
  readonly times: readonly number[];
  readonly range: NonNullable<Column['range']>;
}

/** Draw each run of steps that have readings as one shape. */
export function drawEnvelopes(u: uPlot, envelopes: readonly Envelope[]): void {
  const { ctx } = u;
  const { left, top, width, height } = u.bbox;
  ctx.save();
  ctx.beginPath();
  ctx.rect(left, top, width, height);
  ctx.clip();
  ctx.globalAlpha = 0.22;
  for (const { color, times, range } of envelopes) {
    const { least, most } = range;
    const x = (step: number) => u.valToPos(times[step] ?? 0, 'x', true);
    const y = (value: number | undefined) => u.valToPos(value ?? 0, 'y', true);
    ctx.fillStyle = color;
    let begin = 0;
    for (let step = 0; step <= times.length; step += 1) {
      if (step < times.length && !Number.isNaN(most[step])) {
        continue;
      }
      if (step > begin) {
        ctx.beginPath();
        for (let at = begin; at < step; at += 1) {
          ctx.lineTo(x(at), y(most[at]));
        }
        for (let at = step - 1; at >= begin; at -= 1) {
          ctx.lineTo(x(at), y(least[at]));
        }
        ctx.fill();
      }
      begin = step + 1;
    }
  }
  ctx.restore();
}
