/**
 * Lines that a screen reader reads out.
 *
 * It reads what changes in a region that it knows. One that comes together with its
 * words may be passed over, so words follow after the region has stood there empty.
 */

import { h, setText } from './dom';

/** By then a browser has told the screen reader of a region. */
const STANDING_MS = 100;

/** Put words into a region once it has stood on the page for a moment. */
function fillLater(region: Element, ...words: (Node | string)[]): number {
  return window.setTimeout(() => region.replaceChildren(...words), STANDING_MS);
}

/**
 * Let the status lines of a part that is drawn anew say first what they said before.
 * @param old - the part that is replaced
 * @param now - what replaces it
 */
export function keepLines(old: Element, now: Element): void {
  const before = old.querySelectorAll('[role=status]');
  now.querySelectorAll('[role=status]').forEach((line, place) => {
    const earlier = before[place];
    if (earlier?.textContent !== line.textContent) {
      fillLater(line, ...line.childNodes);
      line.replaceChildren(...(earlier?.childNodes ?? []));
    }
  });
}

export class StatusLine {
  readonly node: HTMLElement;
  private timer = 0;

  /** @param words - are said once the line stands on the page */
  constructor(words = '', attributes: Record<string, string> = {}) {
    this.node = h('p', { ...attributes, role: 'status' });
    this.say(words);
  }

  /** Say something, instead of what was to be said. */
  say(words: string): void {
    window.clearTimeout(this.timer);
    this.timer = fillLater(this.node, words);
  }

  /** Say at once what changes on a line that a person has in sight. */
  write(words: string): void {
    window.clearTimeout(this.timer);
    setText(this.node, words);
  }
}
