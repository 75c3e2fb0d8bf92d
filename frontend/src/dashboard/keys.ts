/** The keys of the dashboard, and the list of them for people. */

import type { Viewport } from '../chart/viewport';
import { h } from '../dom';

const ZOOM = 1.5;
const PAN = 0.25;

const LIST: readonly (readonly [string, string])[] = [
  ['drag', 'show that span'],
  ['Shift + drag', 'select a span: its statistics, joules, export'],
  ['Ctrl or ⌘ + wheel, pinch', 'zoom'],
  ['Shift + wheel', 'move through time'],
  ['click on a cell’s band', 'what that cell cost'],
  ['+ and −', 'zoom'],
  ['← and →', 'move; on a chart, read single values'],
  ['Shift + ← →, then Enter', 'on a chart: select a span'],
  ['Enter', 'on a chart: what the cell there cost'],
  ['Home and End', 'the oldest that is kept; now'],
  ['Space', 'on a chart: pause and resume'],
  ['Esc', 'forget the selection, close the card, then go on with now']
];

/** Move the view by a key; whether this was one of its keys. */
export function moveByKey(key: string, viewport: Viewport): boolean {
  switch (key) {
    case '+':
    case '=':
      viewport.zoom(1 / ZOOM);
      return true;
    case '-':
      viewport.zoom(ZOOM);
      return true;
    case 'ArrowLeft':
      viewport.pan(-PAN);
      return true;
    case 'ArrowRight':
      viewport.pan(PAN);
      return true;
    case 'Home':
      viewport.toStart();
      return true;
    case 'End':
      viewport.follow();
      return true;
    default:
      return false;
  }
}

/** What hands can do, to be unfolded. */
export function keyList(): HTMLElement {
  return h(
    'details',
    { class: 'wb-keys' },
    h('summary', {}, 'Mouse and keys'),
    h(
      'dl',
      {},
      ...LIST.map(([keys, what]) =>
        h('div', {}, h('dt', {}, keys), h('dd', {}, what))
      )
    )
  );
}
