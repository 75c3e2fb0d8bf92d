/** The labels of lanes, to the left of their rows. */

import { h } from '../dom';
import { clip } from '../format';
import type { Lane, Layout } from './lanes';
import type { Frame } from './plot';

export class Gutter {
  readonly node = h('div', { class: 'wb-timeline-lanes' });

  /** Put each label beside its lane. */
  place({ lanes, height }: Layout, frame: Frame): void {
    const perUnit = frame.height / height;
    this.node.style.width = `${frame.left}px`;
    this.node.style.top = `${frame.top}px`;
    this.node.replaceChildren(
      ...lanes.map(lane => {
        const label = laneLabel(lane);
        label.style.top = `${lane.top * perUnit}px`;
        label.style.height = `${Math.min(lane.height, 1) * perUnit}px`;
        return label;
      })
    );
  }
}

function laneLabel({ label }: Lane): HTMLElement {
  const words = clip(label, 80);
  return h('span', { class: 'wb-timeline-lane', title: words }, words);
}
