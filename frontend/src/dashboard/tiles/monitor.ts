/** What watching costs, and whether it is held back because it disturbed. */

import type { Drawable, DrawLoop } from '../../chart/loop';
import { h, setText } from '../../core/dom';
import { clip } from '../../core/format';
import type { Device } from '../../shapes/protocol';
import type { Stream } from '../../core/shared';
import { FiguresNow } from './now';
import { trans } from '../../core/translation';

export class MonitorTile implements Drawable {
  readonly node: HTMLElement;
  readonly isOfNow = true;

  constructor(
    private readonly device: Device,
    private readonly stream: Stream
  ) {
    this.figures = new FiguresNow(device, device.metrics, stream.store);
    this.node = h(
      'section',
      { class: 'wb-monitor', 'aria-label': trans.__('What watching costs') },
      h('h3', {}, trans.__('What watching costs')),
      this.figures.node,
      this.note
    );
  }

  addTo(loop: DrawLoop): void {
    loop.add(this.figures);
    loop.add(this);
  }

  write(): void {
    const words = this.stream.statements
      .health(this.device)
      .map(({ sentence }) => sentence);
    setText(this.note, clip(words.join(' '), 400));
  }

  private readonly figures: FiguresNow;
  private readonly note = h('p', { class: 'wb-note', role: 'status' });
}
