/** Live charts of one feed: the notebook's widget, and a kernel's machine. */

import { Chart } from '../chart/chart';
import { DrawLoop } from '../chart/loop';
import { Viewport } from '../core/viewport';
import { h, setText } from '../core/dom';
import { clip } from '../core/format';
import { StatusLine } from '../core/status';
import { onThemeChange } from '../core/theme';
import {
  absenceWords,
  deviceHeading,
  deviceLabel,
  isUnread,
  replayWords,
  stateName
} from '../core/words';
import type { Feed } from './feed';
import type { Group } from './groups';
import { groups } from './groups';

/** What to show: the part of anywidget's model that says it. */
export interface Options {
  get(name: string): unknown;
  on(event: string, callback: () => void): void;
  off(event: string, callback: () => void): void;
}

const RATE_HZ = 10;
const TRAITS = ['metrics', 'gpu', 'window_s', 'height', 'note'];

export class Monitor {
  readonly node: HTMLElement;

  constructor(
    private readonly model: Options,
    private readonly feed: Feed
  ) {
    const { store, connection } = feed;
    this.viewport = new Viewport(() => store.now(), this.windowMs);
    this.loop = new DrawLoop(store, this.viewport);
    this.node = h(
      'section',
      {
        class: 'wb-root wb-widget',
        'aria-label': 'GPU monitor',
        // its keys are not the notebook's, too
        'data-wb-keys': 'own'
      },
      this.head.node,
      this.body,
      this.note
    );
    this.stops = [
      store.onChange(() => this.refresh()),
      connection.listen({ status: () => this.writeHead() }),
      onThemeChange(() => {
        this.charts.forEach(chart => chart.restyle());
        this.loop.drawNow();
      })
    ];
    TRAITS.forEach(name => model.on(`change:${name}`, this.rebuild));
    this.rebuild();
  }

  dispose(): void {
    TRAITS.forEach(name => this.model.off(`change:${name}`, this.rebuild));
    this.stops.forEach(stop => stop());
    this.feed.connection.demand(this, null);
    this.charts.forEach(chart => chart.dispose());
    this.loop.dispose();
  }

  private readonly rebuild = (): void => {
    const { store, connection } = this.feed;
    this.described = JSON.stringify(store.devices);
    this.charts.forEach(chart => chart.dispose());
    this.charts = [];
    this.loop.clear();
    connection.demand(this, {
      rateHz: RATE_HZ,
      historySeconds: this.windowMs / 1000
    });
    this.viewport.setWindow(this.windowMs);
    const gpu = this.model.get('gpu');
    const metrics = this.model.get('metrics');
    this.groups = groups(
      store.devices,
      typeof gpu === 'number' ? gpu : null,
      Array.isArray(metrics) ? metrics.map(String) : null,
      Math.min(600, Math.max(60, Number(this.model.get('height')) || 120))
    );
    this.body.replaceChildren(...this.groups.map(group => this.group(group)));
    const note = this.model.get('note');
    const words = typeof note === 'string' ? clip(note, 600) : '';
    setText(this.note, `${this.feed.note} ${words}`.trim());
    this.note.hidden = !this.note.textContent;
    this.writeHead();
  };

  private group({ device, charts, missing }: Group): HTMLElement {
    const made = charts.map(
      spec =>
        new Chart(spec, {
          store: this.feed.store,
          syncKey: 'warpbook-widget',
          marks: () => []
        })
    );
    this.charts.push(...made);
    made.forEach(chart => this.loop.add(chart));
    const name = deviceHeading(device, this.feed.store.devices);
    const replay = device.origin === 'replay';
    return h(
      'div',
      {},
      h(
        'h3',
        {},
        name,
        replay
          ? h('span', { class: 'wb-badge wb-badge-replay' }, 'REPLAY')
          : null
      ),
      h('div', { class: 'wb-grid' }, ...made.map(chart => chart.node)),
      ...missing.map(words => h('p', { class: 'wb-missing' }, words))
    );
  }

  private refresh(): void {
    if (JSON.stringify(this.feed.store.devices) !== this.described) {
      this.rebuild();
    }
    this.writeHead();
  }

  /** Say what is being shown, or why nothing is. */
  private writeHead(): void {
    const { connection, store, reader } = this.feed;
    const { phase, why } = connection.status;
    const words: string[] = [];
    if (phase !== 'open') {
      words.push(why || 'Connecting to the Jupyter server…');
    } else {
      if (store.replay !== null) {
        words.push(`Replay of ${replayWords(store.replay)}.`);
      }
      if (this.groups.length === 0) {
        const gpu = this.model.get('gpu');
        words.push(
          typeof gpu === 'number'
            ? `This ${reader} has no GPU ${gpu}.`
            : `This ${reader} sees no GPU.`,
          ...store.absences.map(absenceWords)
        );
      }
      for (const { device } of this.groups) {
        const latest = store.latest(device);
        if (latest.state !== 'ok' && !isUnread(latest)) {
          words.push(
            `${deviceLabel(device, store.devices)} is ${stateName(latest.state)}. ${latest.why}`
          );
        }
      }
    }
    this.head.say(words.join(' '));
  }

  private get windowMs(): number {
    const seconds = Number(this.model.get('window_s')) || 60;
    return Math.min(600, Math.max(5, seconds)) * 1000;
  }

  private readonly head = new StatusLine('', { class: 'wb-note' });
  private readonly body = h('div', {});
  private readonly note = h('p', { class: 'wb-note' });
  private readonly viewport: Viewport;
  private readonly loop: DrawLoop;
  private readonly stops: (() => void)[];
  private charts: Chart[] = [];
  private groups: Group[] = [];
  private described = '';
}
