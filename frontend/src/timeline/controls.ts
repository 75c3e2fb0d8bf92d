/** What a person can have a timeline do: by buttons, and by keys. */

import { h } from '../dom';

const ZOOM = 2;
const PAN = 0.25;

export interface Controlled {
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
  controlled: Controlled,
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
    button('Zoom in (+)', '+', () => controlled.zoom(1 / ZOOM)),
    button('Zoom out (-)', '−', () => controlled.zoom(ZOOM)),
    button('Earlier (left arrow)', '←', () => controlled.pan(-PAN)),
    button('Later (right arrow)', '→', () => controlled.pan(PAN)),
    button('Show all (0)', 'All', () => controlled.showAll()),
    button('Statistics of what is seen (s)', 'Statistics', () =>
      controlled.selectSeen()
    ),
    search,
    button('Save as Chrome trace', 'Save', () => void controlled.save())
  );
}

/** Gives whether a key did something. */
type Act = (controlled: Controlled) => boolean;

const did =
  (act: (controlled: Controlled) => void): Act =>
  controlled => {
    act(controlled);
    return true;
  };

const KEYS: Readonly<Record<string, Act>> = {
  '+': did(each => each.zoom(1 / ZOOM)),
  '=': did(each => each.zoom(1 / ZOOM)),
  '-': did(each => each.zoom(ZOOM)),
  ArrowLeft: did(each => each.pan(-PAN)),
  ArrowRight: did(each => each.pan(PAN)),
  '0': did(each => each.showAll()),
  Home: did(each => each.showAll()),
  s: did(each => each.selectSeen()),
  Escape: each => each.deselect()
};

/** Do what a key asks for, which is then nobody else's. */
export function pressed(event: KeyboardEvent, controlled: Controlled): void {
  const { key, target } = event;
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
