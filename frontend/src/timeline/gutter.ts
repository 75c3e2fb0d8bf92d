/** The labels of lanes, to the left of their rows; a click collapses a lane. */

import { h } from '../core/dom';
import { clip } from '../core/format';
import type { Lane, Layout } from './lanes';
import { laneName } from './lanes';
import type { Frame } from './plot';

export class Gutter {
  readonly node = h('div', { class: 'wb-timeline-lanes' });

  /** @param toggle - collapse a lane, or open it again */
  constructor(private readonly toggle: (lane: string) => void) {}

  /** Put each label beside its lane. */
  place({ lanes, height }: Layout, frame: Frame): void {
    const perUnit = frame.height / height;
    this.node.style.width = `${frame.left}px`;
    this.node.style.top = `${frame.top}px`;
    // the same buttons as long as there are the same lanes: one may have the focus
    const names = lanes.map(laneName).join('\n');
    if (names !== this.names) {
      this.names = names;
      this.node.replaceChildren(...lanes.map(lane => this.label(lane)));
    }
    lanes.forEach((lane, at) => {
      const label = this.node.children[at] as HTMLElement;
      label.style.top = `${lane.top * perUnit}px`;
      label.style.height = `${Math.min(lane.height, 1) * perUnit}px`;
      label.setAttribute('aria-expanded', String(!lane.isCollapsed));
    });
  }

  private label(lane: Lane): HTMLElement {
    const words = clip(lane.label, 80);
    return h(
      'button',
      {
        class: 'wb-timeline-lane',
        title: `${words}: collapse or open`,
        click: () => this.toggle(laneName(lane))
      },
      h('span', {}, words)
    );
  }

  private names = '';
}
