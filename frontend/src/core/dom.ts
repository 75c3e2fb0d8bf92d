/** Elements from data: strings become text nodes, so no name can become markup. */

import { unbroken } from './format';

type Attributes = Record<string, string | ((event: Event) => void)>;

/** Whose text people copy to run it. */
const CODE = new Set(['pre', 'code']);

/**
 * Make an element; attributes that are functions are event listeners. In words each
 * number stays on one line with its unit.
 */
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: (Node | string | null)[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === 'string') {
      element.setAttribute(name, value);
    } else {
      element.addEventListener(name, value);
    }
  }
  const isCode = CODE.has(tag);
  element.append(
    ...children
      .filter(child => child !== null)
      .map(child =>
        typeof child === 'string' && !isCode ? unbroken(child) : child
      )
  );
  return element;
}

const SVG = 'http://www.w3.org/2000/svg';

/** Make an element of a picture. */
export function svg(
  tag: string,
  attributes: Record<string, string>,
  ...children: Node[]
): SVGElement {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) {
    element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

/** Set an element's text, touching the page only if it is another one. */
export function setText(element: Element, text: string): void {
  if (element.textContent !== text) {
    element.textContent = text;
  }
}

/** The button that opens something, by what `data-opens` says of it. */
export function openerOf(place: Element, opens: string): HTMLElement | null {
  return place.querySelector(`[data-opens="${CSS.escape(opens)}"]`);
}

/** Write a list anew; the focus stays on the button that opens the same. */
export function rewrite(list: HTMLElement, ...children: Node[]): void {
  const focused = document.activeElement as HTMLElement | null;
  const opens = list.contains(focused) ? focused?.dataset['opens'] : undefined;
  list.replaceChildren(...children);
  if (opens !== undefined) {
    openerOf(list, opens)?.focus();
  }
}

/** Save a file where the browser puts downloads. */
export function saveFile(file: File): void {
  const url = URL.createObjectURL(file);
  h('a', { href: url, download: file.name }).click();
  // the browser reads it after this turn
  window.setTimeout(() => URL.revokeObjectURL(url), 60_000);
}
