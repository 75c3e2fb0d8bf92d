/** What a person can have a timeline do: by buttons, and by keys. */

import { h } from '../core/dom';

const ZOOM = 2;
const PAN = 0.25;

export interface ViewControl {
  /** At the pointer, or at the middle while it is elsewhere. */
  zoom(factor: number): void;
  /** By a share of what is seen. */
  pan(share: number): void;
  showAll(): void;
  /** Show the pinned event or the marked span, whichever was chosen last. */
  showChosen(): void;
  /** Mark the span of the pinned event, or what is seen, and add it up. */
  markChosen(): void;
  /** Pin the event before or after the pinned one. */
  step(by: 1 | -1): void;
  /** Go to the row of the pinned event's name; false if there is none. */
  goToRow(): boolean;
  search(): void;
  /** Give up the pinned event, else the marked span; false if there is neither. */
  deselect(): boolean;
  /** Show the list of keys, or hide it. */
  help(): void;
  save(): Promise<void>;
}

/** Gives whether a key did something. */
type Act = (controlled: ViewControl) => boolean;

const did =
  (act: (controlled: ViewControl) => void): Act =>
  controlled => {
    act(controlled);
    return true;
  };

/** Keys in lower case, as they are shown, what they do. */
const KEYS: readonly (readonly [readonly string[], string, string, Act])[] = [
  [
    ['w', 'arrowup', '+', '='],
    'W, ↑ or +',
    'zooms in at the pointer',
    did(view => view.zoom(1 / ZOOM))
  ],
  [
    ['s', 'arrowdown', '-'],
    'S, ↓ or -',
    'zooms out',
    did(view => view.zoom(ZOOM))
  ],
  [['a', 'arrowleft'], 'A or ←', 'moves earlier', did(view => view.pan(-PAN))],
  [['d', 'arrowright'], 'D or →', 'moves later', did(view => view.pan(PAN))],
  [['0', 'home'], '0 or Home', 'shows all', did(view => view.showAll())],
  [
    ['f'],
    'F',
    'zooms to the pinned event or the marked span',
    did(view => view.showChosen())
  ],
  [
    ['m'],
    'M',
    'marks the span of the pinned event, else what is seen, and adds it up',
    did(view => view.markChosen())
  ],
  [[','], ', (comma)', 'pins the event before', did(view => view.step(-1))],
  [['.'], '. (dot)', 'pins the event after', did(view => view.step(1))],
  [
    ['r'],
    'R',
    'goes to the row of the pinned event in the tables',
    view => view.goToRow()
  ],
  [
    ['/'],
    '/',
    'searches; then Enter and Shift+Enter go to the next and the previous match',
    did(view => view.search())
  ],
  [['escape'], 'Escape', 'unpins, then unmarks', view => view.deselect()],
  [['?'], '?', 'shows or hides this list', did(view => view.help())]
];

/** What else there is for the list. */
const OTHERS: readonly (readonly [string, string])[] = [
  ['P on the name of a lane', 'pins the lane to the top'],
  ['drag', 'moves'],
  ['Shift and drag, or a drag on the axis', 'marks a span and adds it up'],
  ['Ctrl or ⌘ and wheel, or a pinch', 'zooms at the pointer'],
  ['Shift and wheel', 'moves; without Shift the page scrolls'],
  ['click', 'pins an event']
];

/** The list of keys, hidden at first. */
export function helpList(): HTMLElement {
  const rows = [
    ...KEYS.map(([, keys, words]) => [keys, words] as const),
    ...OTHERS
  ];
  return h(
    'dl',
    { class: 'wb-timeline-help', hidden: '' },
    ...rows.flatMap(([keys, words]) => [h('dt', {}, keys), h('dd', {}, words)])
  );
}

/** The buttons, then the search. */
export function toolbar(
  controlled: ViewControl,
  search: HTMLElement
): HTMLElement {
  const button = (name: string, sign: string, click: () => void) =>
    h(
      'button',
      { class: 'wb-button', 'aria-label': name, title: name, click },
      sign
    );
  return h(
    'div',
    {
      class: 'wb-controls',
      role: 'toolbar',
      'aria-label': 'Timeline controls'
    },
    button('Zoom in (W)', '+', () => controlled.zoom(1 / ZOOM)),
    button('Zoom out (S)', '−', () => controlled.zoom(ZOOM)),
    button('Earlier (A)', '←', () => controlled.pan(-PAN)),
    button('Later (D)', '→', () => controlled.pan(PAN)),
    button('Show all (0)', 'All', () => controlled.showAll()),
    button('Mark and add up (M)', 'Sum', () => controlled.markChosen()),
    button('Save as Chrome trace', 'Save', () => void controlled.save()),
    button('Keys (?)', '?', () => controlled.help()),
    search
  );
}

/** Do what a key asks for, which is then nobody else's. */
export function pressed(event: KeyboardEvent, controlled: ViewControl): void {
  const { target, ctrlKey, metaKey, altKey } = event;
  const isTyping =
    target instanceof HTMLElement &&
    (target.isContentEditable || target.matches('input, select, textarea'));
  if (isTyping || ctrlKey || metaKey || altKey) {
    return;
  }
  const key = event.key.toLowerCase();
  const found = KEYS.find(([keys]) => keys.includes(key));
  if (found?.[3](controlled)) {
    // else the dashboard's charts would move too
    event.preventDefault();
    event.stopPropagation();
  }
}
