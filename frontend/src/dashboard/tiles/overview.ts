/** All GPUs at a glance: what each does now; the chosen one's charts are below. */

import { activityOf } from '../../core/activity';
import type { Drawable } from '../../chart/loop';
import type { Span } from '../../core/viewport';
import { h, setText } from '../../core/dom';
import { clip, duration, text, usedOfTotal } from '../../core/format';
import { instancesOf } from '../../core/instances';
import type { Device } from '../../shapes/protocol';
import type { Stream } from '../../core/page_stream';
import {
  deviceLabel,
  isUnread,
  missingWords,
  stateName
} from '../../core/words';
import { Badge } from './badge';
import { Pill, sinceWords } from './pill';
import { heat, heatBackground } from './heat';
import { trans } from '../../core/translation';

const PERIOD_MS = 500;

export interface OverviewOptions {
  readonly stream: Stream;
  /** What the strips span. */
  readonly span: () => Span;
  /** Show the charts of this GPU. */
  readonly choose: (device: Device) => void;
}

export class Overview implements Drawable {
  readonly node: HTMLElement;
  readonly isOfNow = true;

  constructor(
    devices: readonly Device[],
    chosen: Device,
    private readonly options: OverviewOptions
  ) {
    this.tiles = devices.map(
      device => new GpuTile(device, device.id === chosen.id, options)
    );
    this.node = h(
      'section',
      {
        class: 'wb-overview',
        'aria-label': trans.__('All GPUs'),
        keydown: event => this.key(event as KeyboardEvent)
      },
      ...this.tiles.map(({ node }) => node)
    );
    this.write();
  }

  write(): void {
    const now = performance.now();
    if (now - this.writtenAt >= PERIOD_MS) {
      this.writtenAt = now;
      const span = this.options.span();
      this.tiles.forEach(tile => tile.write(span));
    }
  }

  focus(device: string): void {
    this.tiles.find(tile => tile.device.id === device)?.node.focus();
  }

  get hasFocus(): boolean {
    return this.node.contains(document.activeElement);
  }

  /** Arrows go from one GPU to the next; Enter and Space choose, as on any button. */
  private key(event: KeyboardEvent): void {
    const at = this.tiles.findIndex(
      ({ node }) => node === document.activeElement
    );
    const last = this.tiles.length - 1;
    const next = new Map([
      ['ArrowLeft', at - 1],
      ['ArrowUp', at - 1],
      ['ArrowRight', at + 1],
      ['ArrowDown', at + 1],
      ['Home', 0],
      ['End', last]
    ]).get(event.key);
    if (next === undefined || event.ctrlKey || event.metaKey || event.altKey) {
      return;
    }
    this.tiles[Math.min(last, Math.max(0, next))]?.node.focus();
    event.preventDefault();
    event.stopPropagation();
  }

  private readonly tiles: readonly GpuTile[];
  private writtenAt = -Infinity;
}

class GpuTile {
  readonly node: HTMLButtonElement;

  constructor(
    readonly device: Device,
    isChosen: boolean,
    private readonly options: OverviewOptions
  ) {
    const { devices } = options.stream.store;
    const model = clip(device.name, 60);
    this.badge = new Badge(device);
    this.node = h(
      'button',
      {
        class: 'wb-gpu-tile',
        'aria-pressed': String(isChosen),
        click: () => options.choose(device)
      },
      h(
        'span',
        { class: 'wb-gpu-tile-head' },
        h('strong', {}, deviceLabel(device, devices)),
        this.badge.node
      ),
      h('span', { class: 'wb-gpu-tile-model', title: model }, model),
      h(
        'span',
        { class: 'wb-gpu-tile-verdict' },
        this.pill.node,
        ' ',
        this.since,
        this.state
      ),
      h('span', { class: 'wb-gpu-tile-activity' }, this.activity),
      this.strip,
      h('span', { class: 'wb-gpu-tile-figures' }, this.memory, this.power)
    );
  }

  /** Write what is known now; a state stands where there is no number. */
  write(span: Span): void {
    const { device } = this;
    const { store, statements } = this.options.stream;
    const latest = store.latest(device);
    this.badge.update(latest);
    const wrong = latest.state !== 'ok' && !isUnread(latest);
    const verdict = wrong ? null : statements.verdict(device);
    this.pill.write(verdict, null);
    const since = sinceWords(verdict);
    setText(this.since, since);
    setText(this.state, wrong ? stateName(latest.state) : '');
    this.node.classList.toggle('wb-gpu-tile-wrong', wrong);
    const words = [verdict?.sentence, since].filter(Boolean).join('\n');
    const why = clip(wrong ? latest.why : words, 300);
    this.node.title = why;
    const { metric, label, short } = activityOf(device);
    this.describeStrip(label, span, why);
    const active = store.value(device, metric);
    const instances = instancesOf(device, store.devices).length;
    setText(
      this.activity,
      wrong
        ? ''
        : active !== null
          ? `${short} ${text(active, 'ratio')}`
          : instances > 0
            ? trans._n('%1 MIG instance', '%1 MIG instances', instances)
            : `${short} ${missingWords(device, metric)}`
    );
    setText(this.memory, wrong ? '' : this.memoryWords());
    setText(this.power, wrong ? '' : this.powerWords());
    const background = heatBackground(heat(store, device.id, metric, span));
    if (background !== this.background) {
      this.background = background;
      this.strip.style.background = background;
    }
  }

  /** What the strip shows, in its tooltip and, with the title, in the description. */
  private describeStrip(label: string, span: Span, title: string): void {
    const words = trans.__(
      'Strip: %1 over %2, the newest at the right; stronger is more, empty is no reading.',
      label,
      duration(span.toMs - span.fromMs)
    );
    if (this.strip.title !== words) {
      this.strip.title = words;
    }
    const description = `${title} ${words}`.trim();
    if (this.node.getAttribute('aria-description') !== description) {
      this.node.setAttribute('aria-description', description);
    }
  }

  private memoryWords(): string {
    const { device } = this;
    const used = this.options.stream.store.value(device, 'memory_used_bytes');
    const total = device.facts['memory_total_bytes'];
    return used === null
      ? trans.__('memory %1', missingWords(device, 'memory_used_bytes'))
      : typeof total === 'number' && total > 0
        ? usedOfTotal(used, total)
        : text(used, 'bytes');
  }

  private powerWords(): string {
    const { device } = this;
    if (device.kind === 'mig') {
      return '';
    }
    const watts = this.options.stream.store.value(device, 'power_watts');
    return watts === null
      ? trans.__('power %1', missingWords(device, 'power_watts'))
      : text(watts, 'watts');
  }

  private readonly badge: Badge;
  private readonly pill = new Pill();
  private readonly state = h('span', { class: 'wb-gpu-tile-state' });
  private readonly since = h('small', {});
  private readonly activity = h('span', {});
  private readonly memory = h('span', {});
  private readonly power = h('span', {});
  private background = '';
  /** The figure says the same of now to who can't see it. */
  private readonly strip = h('span', {
    class: 'wb-heat',
    'aria-hidden': 'true'
  });
}
