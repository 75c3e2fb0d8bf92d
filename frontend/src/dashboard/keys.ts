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
  ['F', 'on a chart: full screen; Esc leaves it'],
  ['Shift + ↑ ↓, or drag its title', 'move a chart to another place'],
  ['click on a line’s name', 'hide that line, or show it again'],
  ['Home and End', 'the oldest that is kept; now'],
  ['Space', 'on a chart: pause and resume'],
  [
    'Esc',
    'leave full screen, forget the selection, close the card, then go on with now'
  ]
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

const KEYS_ID = 'warpbook-dashboard-keys';

/** What hands can do: a button, and the list that the browser shows over the page. */
export function keyList(): [HTMLElement, HTMLElement] {
  const list = h(
    'dl',
    { class: 'wb-keys', id: KEYS_ID, popover: 'auto' },
    ...LIST.map(([keys, what]) =>
      h('div', {}, h('dt', {}, keys), h('dd', {}, what))
    )
  );
  const button = h(
    'button',
    {
      class: 'wb-button',
      'aria-label': 'Mouse and keys',
      title: 'Mouse and keys',
      popovertarget: KEYS_ID
    },
    '?'
  );
  return [button, list];
}
