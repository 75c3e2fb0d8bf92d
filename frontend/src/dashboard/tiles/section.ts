/** One device on the dashboard: what it is, how it is, its charts, its instances. */

import type { ChartOptions, ChartSpec } from '../../chart/chart';
import { Chart } from '../../chart/chart';
import type { DrawLoop, Drawable } from '../../chart/loop';
import { h, setText } from '../../core/dom';
import { text, usedOfTotal } from '../../core/format';
import type { Device } from '../../shapes/protocol';
import type { Stream } from '../../core/page_stream';
import {
  deviceHeading,
  deviceLabel,
  isUnread,
  stateName,
  UTILIZATION_NOTE
} from '../../core/words';
import type { Arrangement } from './arrangement';
import { Badge } from './badge';
import type { FullScreen } from './full_screen';
import { FiguresNow } from './now';
import { TileOrder } from './tile_order';
import type { Layout } from './tiles';
import { layout } from './tiles';
import { VerdictLine } from './verdict';
import { trans } from '../../core/translation';
import { activityOf } from '../../core/activity';
import type { Store } from '../../core/store';

/** Facts worth a place beside the name, with how they are written. */
const FACTS: readonly (readonly [
  string,
  (value: string | number) => string
])[] = [
  ['driver_version', value => trans.__('driver %1', value)],
  ['cuda_version', value => `CUDA ${value}`],
  ['memory_total_bytes', value => text(Number(value), 'bytes')],
  ['sm_count', value => trans.__('%1 SMs', value)],
  ['cpu_count', value => trans.__('%1 CPUs', value)],
  ['mig_mode', value => (value === 'enabled' ? trans.__('MIG on') : '')]
];

export interface SectionOptions {
  readonly open: boolean;
  readonly chart: ChartOptions;
  readonly arrangement: Arrangement;
  readonly fullScreen: FullScreen;
  explore(): void;
  /** Draw all charts in the next frame, also what is held. */
  redraw(): void;
}

export class DeviceSection {
  readonly node: HTMLDetailsElement;

  /** @param instances - the sections of a GPU's MIG instances, within its own */
  constructor(
    readonly device: Device,
    private readonly stream: Stream,
    private readonly options: SectionOptions,
    private readonly instances: readonly DeviceSection[] = []
  ) {
    const facts = FACTS.flatMap(([name, write]) => {
      const fact = device.facts[name];
      return fact === undefined ? [] : [write(fact)];
    }).filter(Boolean);
    this.badge = new Badge(device);
    const judged = device.kind === 'gpu' || device.kind === 'mig';
    const name = deviceHeading(device, stream.store.devices);
    this.verdict = judged ? new VerdictLine(device, stream) : null;
    this.folded = judged ? new FoldedFigures(device, stream.store) : null;
    this.node = h(
      'details',
      { class: 'wb-device', 'aria-label': name },
      h(
        'summary',
        {},
        h('h3', {}, name),
        this.badge.node,
        this.folded?.node ?? '',
        h('span', { class: 'wb-facts' }, facts.join(' · '))
      ),
      this.state,
      this.verdict?.node ?? '',
      this.body(layout(device)),
      ...instances.map(({ node }) => node)
    );
    this.node.open = options.open;
    this.update();
  }

  /** Say how the device is; its charts draw themselves. */
  update(): void {
    const latest = this.stream.store.latest(this.device);
    const { state, why } = latest;
    const unread = isUnread(latest);
    const wrong = state !== 'ok' && !unread;
    const label = deviceLabel(this.device, this.stream.store.devices);
    // read out when it changes: it is empty as long as all is well
    setText(
      this.state,
      unread || (!wrong && !why) ? '' : `${label}: ${stateName(state)}. ${why}`
    );
    this.node.classList.toggle('wb-device-wrong', wrong);
    this.badge.update(latest);
    this.instances.forEach(instance => instance.update());
  }

  addTo(loop: DrawLoop): void {
    [...this.charts, this.verdict, this.figures, this.folded].forEach(
      part => part && loop.add(part)
    );
    this.instances.forEach(instance => instance.addTo(loop));
  }

  /** Draw in the colours that hold now. */
  restyle(): void {
    this.charts.forEach(chart => chart.restyle());
    this.instances.forEach(instance => instance.restyle());
  }

  dispose(): void {
    this.charts.forEach(chart => chart.dispose());
    this.instances.forEach(instance => instance.dispose());
  }

  private body(shown: Layout): HTMLElement {
    const { kind } = this.device;
    const main = [...shown.activity, ...shown.main];
    return h(
      'div',
      { class: 'wb-device-body' },
      this.grid(kind === 'host' ? 'host' : 'gpu', main),
      kind === 'gpu'
        ? h('p', { class: 'wb-note' }, trans.__(UTILIZATION_NOTE))
        : null,
      kind !== 'host' && !shown.knowsChip ? missingList(shown, true) : null,
      this.more(shown, this.grid('more', shown.more)),
      kind === 'host' || shown.knowsChip ? missingList(shown, false) : null,
      h(
        'button',
        { class: 'wb-button', click: () => this.options.explore() },
        trans.__('Explore this time window')
      )
    );
  }

  /** Charts in the person's order, which can be changed. */
  private grid(name: string, specs: readonly ChartSpec[]): HTMLElement | null {
    if (specs.length === 0) {
      return null;
    }
    const { arrangement } = this.options;
    const key = `${this.device.kind}/${name}`;
    const charts = arrangement
      .inOrder(key, specs)
      .map(spec => this.chart(spec));
    const grid = h(
      'div',
      { class: `wb-grid wb-grid-${name}` },
      ...charts.map(({ node }) => node)
    );
    const order = new TileOrder(grid, charts, titles =>
      arrangement.reorder(key, titles)
    );
    charts.forEach(chart =>
      chart.node.addEventListener('keydown', event =>
        this.key(event, chart, order)
      )
    );
    return grid;
  }

  /** The keys of a chart that change its place and size. */
  private key(event: KeyboardEvent, chart: Chart, order: TileOrder): void {
    const { key, shiftKey, ctrlKey, metaKey, altKey } = event;
    if (ctrlKey || metaKey || altKey) {
      return;
    }
    if (key === 'f' || key === 'F') {
      this.options.fullScreen.toggle(chart.node);
    } else if (shiftKey && (key === 'ArrowUp' || key === 'ArrowDown')) {
      order.move(chart, key === 'ArrowUp' ? -1 : 1);
    } else {
      return;
    }
    event.preventDefault();
    event.stopPropagation();
  }

  private more(
    { figures }: Layout,
    charts: HTMLElement | null
  ): HTMLElement | null {
    if (figures.length === 0 && charts === null) {
      return null;
    }
    const { store } = this.stream;
    this.figures = new FiguresNow(this.device, figures, store);
    return h(
      'details',
      { class: 'wb-more' },
      h('summary', {}, trans.__('More of this device')),
      charts,
      this.figures.node
    );
  }

  private chart(spec: ChartSpec): Chart {
    const { arrangement, fullScreen } = this.options;
    const name = `${this.device.kind}/${spec.title}`;
    const chart = new Chart(spec, {
      ...this.options.chart,
      hidden: {
        has: metric => arrangement.isHidden(name, metric),
        toggle: metric => {
          arrangement.toggle(name, metric);
          this.options.redraw();
        }
      },
      buttons: of => [
        h(
          'button',
          {
            class: 'wb-full-button',
            'aria-label': `Full screen: ${spec.title}`,
            title: 'Full screen (F on the chart); Escape leaves it',
            click: () => fullScreen.toggle(of.node)
          },
          '⤢'
        )
      ]
    });
    this.charts.push(chart);
    return chart;
  }

  private readonly charts: Chart[] = [];
  private figures: FiguresNow | null = null;
  private readonly badge: Badge;
  private readonly folded: FoldedFigures | null;
  private readonly verdict: VerdictLine | null;
  private readonly state = h('p', {
    class: 'wb-device-state',
    role: 'status'
  });
}

/** Say once what a device does not tell, for one reason after the other. */
function missingList({ missing }: Layout, open: boolean): HTMLElement | null {
  if (missing.length === 0) {
    return null;
  }
  const count = missing.reduce((sum, { what }) => sum + what.length, 0);
  const list = h(
    'details',
    { class: 'wb-missing' },
    h(
      'summary',
      {},
      trans._n(
        '%1 metric not available on this device',
        '%1 metrics not available on this device',
        count
      )
    ),
    h(
      'ul',
      {},
      ...missing.map(({ why, what }) =>
        h('li', {}, h('strong', {}, `${what.join(', ')}: `), why)
      )
    )
  );
  list.open = open;
  return list;
}

const PERIOD_MS = 500;

export class FoldedFigures implements Drawable {
  /** Hidden where the section is unfolded, and then not drawn. */
  readonly node = h('span', { class: 'wb-folded' });
  readonly isOfNow = true;

  constructor(
    private readonly device: Device,
    private readonly store: Store
  ) {}

  write(): void {
    const now = performance.now();
    if (now - this.drawnAt >= PERIOD_MS) {
      this.drawnAt = now;
      setText(this.node, this.words());
    }
  }

  private words(): string {
    const { device, store } = this;
    const { metric, short } = activityOf(device);
    const active = store.value(device, metric);
    const used = store.value(device, 'memory_used_bytes');
    const total = device.facts['memory_total_bytes'];
    return [
      active === null ? '' : `${short} ${text(active, 'ratio')}`,
      used === null || typeof total !== 'number' ? '' : usedOfTotal(used, total)
    ]
      .filter(Boolean)
      .join(' · ');
  }

  private drawnAt = -Infinity;
}
