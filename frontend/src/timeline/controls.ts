/** What a person can have a timeline do: by buttons, and by keys. */

import { h } from '../core/dom';

const ZOOM = 2;
const PAN = 0.25;

export interface ViewControl {
  zoom(factor: number): void;
  /** By a share of what is seen. */
  pan(share: number): void;
  showAll(): void;
  selectSeen(): void;
  /** Give up the pinned event, else the selected part; false if there is neither. */
  deselect(): boolean;
  save(): Promise<void>;
}

/** The buttons, with the search among them. */
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
    button('Statistics of what is seen (M)', 'Statistics', () =>
      controlled.selectSeen()
    ),
    search,
    button('Save as Chrome trace', 'Save', () => void controlled.save())
  );
}

/** Gives whether a key did something. */
type Act = (controlled: ViewControl) => boolean;

const did =
  (act: (controlled: ViewControl) => void): Act =>
  controlled => {
    act(controlled);
    return true;
  };

const zoomIn = did(view => view.zoom(1 / ZOOM));
const zoomOut = did(view => view.zoom(ZOOM));
const earlier = did(view => view.pan(-PAN));
const later = did(view => view.pan(PAN));
const showAll = did(view => view.showAll());

/** By the key in lower case. */
const KEYS: Readonly<Record<string, Act>> = {
  w: zoomIn,
  s: zoomOut,
  a: earlier,
  d: later,
  arrowup: zoomIn,
  arrowdown: zoomOut,
  arrowleft: earlier,
  arrowright: later,
  '+': zoomIn,
  '=': zoomIn,
  '-': zoomOut,
  '0': showAll,
  home: showAll,
  m: did(view => view.selectSeen()),
  escape: view => view.deselect()
};

/** What the keys do, for the chart's label. */
export const KEY_WORDS =
  'W and S or the up and down arrow zoom in and out, A and D or the left and ' +
  'right arrow move, 0 shows all, M adds up what is seen, Escape unpins.';

/** Do what a key asks for, which is then nobody else's. */
export function pressed(event: KeyboardEvent, controlled: ViewControl): void {
  const { target } = event;
  const key = event.key.toLowerCase();
  const typing = target instanceof HTMLInputElement;
  if (typing || event.ctrlKey || event.metaKey || event.altKey) {
    return;
  }
  if (Object.hasOwn(KEYS, key) && KEYS[key]?.(controlled)) {
    // else the dashboard's charts would move too
    event.preventDefault();
    event.stopPropagation();
  }
}
