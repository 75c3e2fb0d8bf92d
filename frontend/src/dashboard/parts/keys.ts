/** The keys of the dashboard, and the list of them for people. */

import type { Viewport } from '../../core/viewport';
import { h } from '../../core/dom';
import { mark, trans } from '../../core/translation';

const ZOOM = 1.5;
const PAN = 0.25;

const LIST: readonly (readonly [string, string])[] = [
  [mark('drag'), mark('show that span')],
  [mark('Shift + drag'), mark('select a span: its statistics, joules, export')],
  [mark('Ctrl or ⌘ + wheel, pinch'), mark('zoom')],
  [mark('Shift + wheel'), mark('move through time')],
  [mark('click on a cell’s band'), mark('what that cell cost')],
  [mark('+ and −'), mark('zoom')],
  [mark('← and →'), mark('move; on a chart, read single values')],
  [mark('Shift + ← →, then Enter'), mark('on a chart: select a span')],
  [mark('Enter'), mark('on a chart: what the cell there cost')],
  [mark('F'), mark('on a chart: full screen; Esc leaves it')],
  [
    mark('Shift + ↑ ↓, or drag its title'),
    mark('move a chart to another place')
  ],
  [mark('click on a line’s name'), mark('hide that line, or show it again')],
  [mark('Home and End'), mark('the oldest that is kept; now')],
  [mark('R'), mark('go to the newest report')],
  [mark('Space'), mark('on a chart: pause and resume')],
  [
    mark('Esc'),
    mark(
      'leave full screen, forget the selection, close the card, then go on with now'
    )
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
      h('div', {}, h('dt', {}, trans.__(keys)), h('dd', {}, trans.__(what)))
    )
  );
  const button = h(
    'button',
    {
      class: 'wb-button',
      'aria-label': trans.__('Mouse and keys'),
      title: trans.__('Mouse and keys'),
      popovertarget: KEYS_ID
    },
    '?'
  );
  return [button, list];
}
