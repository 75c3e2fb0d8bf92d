/** One device on the dashboard: what it is, how it is, and its tiles. */

import type { ChartOptions } from '../chart/chart';
import { Chart } from '../chart/chart';
import type { Drawable, DrawLoop } from '../chart/loop';
import { h, setText } from '../dom';
import { text } from '../format';
import type { Device } from '../protocol';
import type { Stream } from '../shared';
import type { Store } from '../store';
import { deviceLabel, isUnread, stateName, UTILIZATION_NOTE } from '../words';
import type { Tile } from './tiles';
import { activityTiles, otherTiles } from './tiles';
import { VerdictLine } from './verdict';

/** Facts worth a place beside the name, with how they are written. */
const FACTS: readonly (readonly [
  string,
  (value: string | number) => string
])[] = [
  ['driver_version', value => `driver ${value}`],
  ['cuda_version', value => `CUDA ${value}`],
  ['memory_total_bytes', value => text(Number(value), 'bytes')],
  ['sm_count', value => `${value} SMs`],
  ['cpu_count', value => `${value} CPUs`],
  ['mig_mode', value => (value === 'enabled' ? 'MIG on' : '')]
];

export class DeviceSection {
  readonly node: HTMLDetailsElement;
  readonly charts: Chart[] = [];

  constructor(
    private readonly device: Device,
    private readonly stream: Stream,
    private readonly options: ChartOptions,
    open: boolean,
    explore: () => void
  ) {
    const label = deviceLabel(device);
    const facts = FACTS.flatMap(([name, write]) => {
      const fact = device.facts[name];
      return fact === undefined ? [] : [write(fact)];
    }).filter(Boolean);
    this.state = h('p', {
      class: 'wb-device-state',
      role: 'status',
      hidden: ''
    });
    const gpu = device.kind === 'gpu';
    const name = gpu ? `${label} · ${device.name}` : 'Host';
    this.verdict = gpu ? new VerdictLine(device, stream.statements) : null;
    this.node = h(
      'details',
      { class: 'wb-device', 'aria-label': name },
      h(
        'summary',
        {},
        h('h3', {}, name),
        originBadge(device),
        this.short,
        h('span', { class: 'wb-facts' }, facts.join(' · '))
      ),
      this.state,
      this.verdict?.node ?? '',
      this.tiles(explore)
    );
    this.node.open = open;
    this.update();
  }

  /** Say how the device is; its charts draw themselves. */
  update(): void {
    const latest = this.stream.store.latest(this.device);
    const { state, why } = latest;
    const unread = isUnread(latest);
    const wrong = state !== 'ok' && !unread;
    this.state.hidden = unread || (!wrong && !why);
    setText(
      this.state,
      `${deviceLabel(this.device)}: ${stateName(state)}. ${why}`
    );
    setText(this.short, wrong ? stateName(state) : '');
    this.node.classList.toggle('wb-device-wrong', wrong);
  }

  addTo(loop: DrawLoop): void {
    this.charts.forEach(chart => loop.add(chart));
    if (this.verdict !== null) {
      loop.add(this.verdict);
    }
  }

  dispose(): void {
    this.charts.forEach(chart => chart.dispose());
  }

  private tiles(explore: () => void): HTMLElement {
    const grid = (kind: string, tiles: Tile[]) =>
      h(
        'div',
        { class: `wb-grid wb-grid-${kind}` },
        ...tiles.map(tile => this.tile(tile))
      );
    const button = h(
      'button',
      { class: 'wb-button', click: explore },
      'Explore this time window'
    );
    if (this.device.kind !== 'gpu') {
      return h('div', {}, grid('host', otherTiles(this.device)), button);
    }
    return h(
      'div',
      {},
      grid('activity', activityTiles(this.device)),
      h('p', { class: 'wb-note' }, UTILIZATION_NOTE),
      grid('gpu', otherTiles(this.device)),
      button
    );
  }

  private tile(tile: Tile): HTMLElement {
    const words = tile.missing
      ? h('p', { class: 'wb-missing' }, tile.missing)
      : null;
    let node: HTMLElement;
    if (tile.chart === null) {
      node = h(
        'section',
        { class: 'wb-tile wb-tile-empty', 'aria-label': tile.title },
        h('header', { class: 'wb-tile-head' }, h('h4', {}, tile.title)),
        words
      );
    } else {
      const chart = new Chart(tile.chart, this.options);
      this.charts.push(chart);
      node = chart.node;
      node.append(words ?? '');
    }
    return node;
  }

  private readonly state: HTMLElement;
  private readonly verdict: VerdictLine | null;
  /** The state beside the name, for a section that is folded. */
  private readonly short = h('span', { class: 'wb-device-short' });
}

/** Whether a device is measured now or played back, for every place that names it. */
export function originBadge(device: Device): HTMLElement {
  const replay = device.origin === 'replay';
  return h(
    'span',
    { class: `wb-badge ${replay ? 'wb-badge-replay' : 'wb-badge-live'}` },
    replay ? 'REPLAY' : 'LIVE'
  );
}

/** What watching costs: figures, because their course over time says little. */
export class MonitorTile implements Drawable {
  readonly node: HTMLElement;

  constructor(
    private readonly device: Device,
    private readonly store: Store
  ) {
    const rows = device.metrics.map(metric => {
      const value = h('dd', {});
      this.values.push(value);
      return h('div', {}, h('dt', {}, metric.label), value);
    });
    this.node = h(
      'section',
      { class: 'wb-monitor', 'aria-label': 'What watching costs' },
      h('h3', {}, 'What watching costs'),
      h('dl', {}, ...rows)
    );
  }

  draw(): void {
    const now = performance.now();
    if (now - this.drawnAt < 1000) {
      return;
    }
    this.drawnAt = now;
    this.device.metrics.forEach((metric, index) => {
      const value = this.store.value(this.device, metric.name);
      // a hundredth of a core is what this is about
      const written =
        metric.name === 'sampler_cpu_ratio' && value !== null
          ? `${(value * 100).toFixed(1)}\u00a0% of a core`
          : text(value, metric.unit);
      const node = this.values[index];
      if (node !== undefined) {
        setText(node, written);
      }
    });
  }

  private readonly values: HTMLElement[] = [];
  private drawnAt = 0;
}
