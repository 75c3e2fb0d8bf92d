/** One GPU, or one instance of a GPU, in a few lines. */

import { activityOf } from '../core/activity';
import { Badge } from '../dashboard/tiles/badge';
import { Pill, sinceWords } from '../dashboard/tiles/pill';
import { h, setText } from '../core/dom';
import { clip, text, unbroken, usedOfTotal } from '../core/format';
import type { Device } from '../shapes/protocol';
import type { Stream } from '../core/page_stream';
import {
  deviceHeading,
  deviceLabel,
  isUnread,
  missingWords,
  stateName
} from '../core/words';
import { trans } from '../core/translation';

export class Card {
  readonly node: HTMLElement;

  constructor(
    readonly device: Device,
    private readonly stream: Stream
  ) {
    const { devices } = stream.store;
    const name = deviceHeading(device, devices);
    this.label = deviceLabel(device, devices);
    this.badge = new Badge(device);
    this.activity = new Figure(activityOf(device).label, [trans.__('used')]);
    this.memory = new Figure(trans.__('Memory'), [
      trans.__('used'),
      trans.__('reserved')
    ]);
    this.node = h(
      'li',
      { class: device.kind === 'mig' ? 'wb-gpu wb-instance' : 'wb-gpu' },
      h('header', {}, h('h4', { title: name }, name), this.badge.node),
      this.state,
      this.figures,
      this.verdict,
      this.condition
    );
    // an instance has no power and no temperature of its own
    const has = (name: string) =>
      device.metrics.some(metric => metric.name === name);
    this.figures.append(
      ...(has(activityOf(device).metric) ? [this.activity.node] : []),
      this.memory.node,
      ...(has('power_watts') ? [this.power.node] : []),
      ...(has('temperature_celsius') ? [this.temperature.node] : [])
    );
    this.update();
  }

  /** Write what is known now. */
  update(): void {
    const { device } = this;
    const latest = this.stream.store.latest(device);
    const unread = isUnread(latest);
    this.badge.update(latest);
    const wrong = latest.state !== 'ok' && !unread;
    // read out when it changes: it is empty as long as all is well
    setText(
      this.state,
      wrong
        ? `${this.label}: ${stateName(latest.state)}. ${clip(latest.why, 200)}`
        : ''
    );
    this.figures.hidden = wrong;
    this.writeFigures();
    this.writeVerdict();
  }

  private writeFigures(): void {
    const { device } = this;
    const { store } = this.stream;
    const { metric } = activityOf(device);
    const active = store.value(device, metric);
    this.activity.write(
      active === null ? missingWords(device, metric) : text(active, 'ratio'),
      [active ?? 0]
    );
    this.writeMemory();

    const watts = store.value(device, 'power_watts');
    const limit = numberFact(device, 'power_limit_watts');
    const of =
      limit === null ? '' : ` ${trans.__('of %1', text(limit, 'watts'))}`;
    this.power.write(
      watts === null
        ? missingWords(device, 'power_watts')
        : `${text(watts, 'watts')}${of}`
    );
    const celsius = store.value(device, 'temperature_celsius');
    this.temperature.write(
      celsius === null
        ? missingWords(device, 'temperature_celsius')
        : text(celsius, 'celsius')
    );
  }

  private writeMemory(): void {
    const { device } = this;
    const { store } = this.stream;
    const used = store.value(device, 'memory_used_bytes');
    const total = numberFact(device, 'memory_total_bytes');
    const reserved =
      store.value(device, 'memory_reserved_bytes') ??
      numberFact(device, 'memory_reserved_bytes');
    if (used === null || total === null) {
      const words =
        used === null
          ? missingWords(device, 'memory_used_bytes')
          : text(used, 'bytes');
      this.memory.write(words, [0, 0]);
      return;
    }
    this.memory.write(
      usedOfTotal(used, total),
      [used / total, (reserved ?? 0) / total],
      reserved === null
        ? ''
        : trans.__('The driver keeps %1 for itself.', text(reserved, 'bytes'))
    );
  }

  private writeVerdict(): void {
    const { statements } = this.stream;
    const verdict = statements.verdict(this.device);
    this.verdict.hidden = verdict === null;
    this.pill.write(verdict);
    if (verdict !== null) {
      setText(this.sentence, unbroken(clip(verdict.sentence, 300)));
      const lines = [sinceWords(verdict), verdict.sentence, verdict.rule];
      if (verdict.kind === 'mixed' || verdict.kind === 'unknown') {
        lines.push(trans.__('%1 profiles a cell.', '%%gpuprof'));
      }
      this.verdict.title = clip(lines.join('\n'), 600);
    }
    const [worst] = statements.health(this.device);
    this.condition.hidden = worst === undefined;
    this.condition.dataset['severity'] = worst?.severity ?? '';
    setText(this.condition, unbroken(clip(worst?.sentence ?? '', 300)));
  }

  private readonly label: string;
  private readonly badge: Badge;
  private readonly state = h('p', { class: 'wb-warning', role: 'status' });
  private readonly figures = h('dl', {});
  private readonly activity: Figure;
  private readonly memory: Figure;
  private readonly power = new Figure(trans.__('Power'), []);
  private readonly temperature = new Figure(trans.__('Temperature'), []);
  private readonly pill = new Pill();
  private readonly sentence = h('span', {});
  private readonly verdict = h(
    'p',
    { class: 'wb-gpu-verdict', hidden: '' },
    this.pill.node,
    this.sentence
  );
  private readonly condition = h('p', {
    class: 'wb-gpu-condition',
    hidden: ''
  });
}

/** A name, a figure and, under them, what share of a whole it is. */
class Figure {
  readonly node: HTMLElement;

  constructor(name: string, parts: readonly string[]) {
    this.bars = parts.map(part =>
      h('span', { class: `wb-meter-part wb-meter-${part}` })
    );
    // the figure says the same to who can't see the bar
    const meter = h(
      'span',
      { class: 'wb-meter', 'aria-hidden': 'true' },
      ...this.bars
    );
    this.node = h(
      'div',
      { class: parts.length > 0 ? 'wb-gpu-share' : 'wb-gpu-figure' },
      h('dt', {}, name),
      h('dd', {}, this.value, parts.length > 0 ? meter : null)
    );
  }

  write(words: string, shares: readonly number[] = [], title = ''): void {
    setText(this.value, words);
    if (this.node.title !== title) {
      this.node.title = title;
    }
    this.bars.forEach((bar, index) => {
      const share = Math.min(1, Math.max(0, shares[index] ?? 0));
      const width = `${(100 * share).toFixed(1)}%`;
      if (bar.style.width !== width) {
        bar.style.width = width;
      }
    });
  }

  private readonly value = h('span', { class: 'wb-gpu-value' });
  private readonly bars: readonly HTMLElement[];
}

function numberFact(device: Device, name: string): number | null {
  const fact = device.facts[name];
  return typeof fact === 'number' && fact > 0 ? fact : null;
}
