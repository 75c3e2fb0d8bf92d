/** What a folded section tells of now: "SM 40 % · 12.3/140 GiB". */

import { activityOf } from '../../core/activity';
import type { Drawable } from '../../chart/loop';
import { h, setText } from '../../core/dom';
import { text, usedOfTotal } from '../../core/format';
import type { Device } from '../../shapes/protocol';
import type { Store } from '../../core/store';

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
