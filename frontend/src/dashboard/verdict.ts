/** One line under a GPU's heading: what holds it back now, and how that was judged. */

import type { Drawable } from '../chart/loop';
import { h, setText } from '../dom';
import { clip } from '../format';
import type { Device } from '../protocol';
import type { Store } from '../store';
import { deviceLabel, verdictName } from '../words';

const PERIOD_MS = 500;

export class VerdictLine implements Drawable {
  readonly node: HTMLElement;

  constructor(
    private readonly device: Device,
    private readonly store: Store
  ) {
    this.node = h(
      'div',
      {
        class: 'wb-verdict',
        role: 'group',
        'aria-label': `What holds ${deviceLabel(device)} back`
      },
      this.pill,
      ' ',
      this.sentence,
      ' ',
      this.rule
    );
  }

  /** Write what is known now; the room stays where nothing is. */
  draw(): void {
    const now = performance.now();
    if (now - this.drawnAt < PERIOD_MS) {
      return;
    }
    this.drawnAt = now;
    const verdict = this.store.verdict(this.device);
    this.pill.hidden = verdict === null;
    this.pill.dataset['kind'] = verdict?.kind ?? '';
    setText(this.pill, verdict === null ? '' : verdictName(verdict.kind));
    setText(this.sentence, clip(verdict?.sentence ?? '', 300));
    setText(this.rule, clip(verdict?.rule ?? '', 300));
  }

  private readonly pill = h('span', { class: 'wb-pill', hidden: '' });
  private readonly sentence = h('span', {});
  private readonly rule = h('small', { class: 'wb-rule' });
  private drawnAt = -Infinity;
}
