/** A link from a name in a report to the slices of that name in its timeline. */

import { h } from '../core/dom';
import { clip } from '../core/format';

const ASKED = 'wb-slices';

/** A link to the slices of a name; what shows the report hears of it. */
export function slicesLink(name: string): HTMLElement {
  const label = `Show ${clip(name, 200)} in the timeline`;
  return h(
    'button',
    {
      class: 'wb-link',
      title: 'Show in the timeline',
      'aria-label': label,
      click: ({ currentTarget }) =>
        currentTarget?.dispatchEvent(
          new CustomEvent(ASKED, { bubbles: true, detail: name })
        )
    },
    '⇥'
  );
}

/** Hear which slices are asked for by links within a node. */
export function onSlices(node: Node, show: (name: string) => void): void {
  node.addEventListener(ASKED, event => {
    event.stopPropagation();
    show(String((event as CustomEvent<unknown>).detail));
  });
}
