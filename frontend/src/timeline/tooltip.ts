/** One small tooltip for whatever is under the mouse. */

import { h } from '../core/dom';
import { clip, count, durationNs, text } from '../core/format';
import type { Hit } from './hit';

/** From the mouse, and from the edges of the window, in pixels. */
const AWAY = 14;
const LONGEST_NAME = 300;
const NS_PER_MS = 1e6;

export class Tooltip {
  /** On the page itself: what a panel holds is cut at its edges. */
  private readonly node = h('div', {
    class: 'wb-root wb-timeline-tooltip',
    role: 'tooltip',
    hidden: ''
  });

  show(hit: Hit, { clientX, clientY }: MouseEvent): void {
    const { node } = this;
    node.replaceChildren(
      h('b', {}, clip(hit.name, LONGEST_NAME)),
      ...tooltipLines(hit).map(line => h('span', {}, line))
    );
    if (!node.isConnected) {
      document.body.append(node);
    }
    node.hidden = false;
    const { offsetWidth: width, offsetHeight: height } = node;
    const right = window.innerWidth - width - AWAY;
    const below = clientY + AWAY;
    const fits = below + height <= window.innerHeight;
    node.style.left = `${Math.max(Math.min(clientX + AWAY, right), 0)}px`;
    node.style.top = `${fits ? below : Math.max(clientY - AWAY - height, 0)}px`;
  }

  hide(): void {
    this.node.hidden = true;
  }

  remove(): void {
    this.node.remove();
  }
}

/** What stands below the name. */
export function tooltipLines(hit: Hit): string[] {
  const at = `${(hit.startNs / NS_PER_MS).toFixed(4)}\u00a0ms`;
  if (hit.merged !== null) {
    const { events, busy } = hit.merged;
    return [
      'takes most of this bar',
      `${count(events)} events, busy ${text(busy, 'ratio')} of ` +
        `${durationNs(hit.lengthNs)} from ${at}`,
      'Zoom in to see them one by one'
    ];
  }
  return [
    `${durationNs(hit.lengthNs)} from ${at}`,
    ...(hit.others > 0
      ? [`and ${count(hit.others)} more here: zoom in to see them`]
      : [])
  ];
}
