/** Figures of now: counts and states, whose course over time says little. */

import type { Drawable } from '../../chart/loop';
import { h, setText } from '../../core/dom';
import { text } from '../../core/format';
import type { Device, Metric } from '../../shapes/protocol';
import type { Store } from '../../core/store';
import { trans } from '../../core/translation';

const PERIOD_MS = 1000;

export class FiguresNow implements Drawable {
  readonly node: HTMLElement;
  readonly isOfNow = true;

  constructor(
    private readonly device: Device,
    private readonly metrics: readonly Metric[],
    private readonly store: Store
  ) {
    this.node = h(
      'dl',
      { class: 'wb-figures wb-now' },
      ...metrics.map(metric => {
        const value = h('dd', {});
        this.values.push(value);
        return h('div', {}, h('dt', {}, metric.label), value);
      })
    );
  }

  write(): void {
    const now = performance.now();
    if (now - this.drawnAt < PERIOD_MS) {
      return;
    }
    this.drawnAt = now;
    this.metrics.forEach((metric, index) => {
      const node = this.values[index];
      if (node !== undefined) {
        const value = this.store.value(this.device, metric.name);
        setText(node, written(metric, value));
      }
    });
  }

  private readonly values: HTMLElement[] = [];
  private drawnAt = -Infinity;
}

function written({ name, unit }: Metric, value: number | null): string {
  if (value !== null && name === 'sampler_cpu_ratio') {
    // a hundredth of a core is what this is about
    return trans.__('%1 of a core', `${(value * 100).toFixed(1)}\u00a0%`);
  }
  if (value !== null && name === 'performance_state') {
    return `P${value.toFixed(0)}`;
  }
  return text(value, unit);
}
