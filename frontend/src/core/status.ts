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
 *
 * Lines of one id are the same, then those of one text, then others in their order.
 * @param old - the part that is replaced
 * @param now - what replaces it
 */
export function keepLines(old: Element, now: Element): void {
  const before = [...old.querySelectorAll('[role=status]')];
  const lines = [...now.querySelectorAll('[role=status]')];
  const earlier = new Map<Element, Element>();
  const pair = (isSame: (line: Element, other: Element) => boolean) => {
    for (const line of lines.filter(line => !earlier.has(line))) {
      const place = before.findIndex(other => isSame(line, other));
      before.splice(place, place < 0 ? 0 : 1).forEach(other => {
        earlier.set(line, other);
      });
    }
  };
  pair((line, other) => idOf(line) !== null && idOf(line) === idOf(other));
  pair((line, other) => line.textContent === other.textContent);
  pair((line, other) => idOf(line) === null && idOf(other) === null);
  for (const line of lines) {
    const said = earlier.get(line);
    if (said?.textContent !== line.textContent) {
      fillLater(line, ...line.childNodes);
      line.replaceChildren(...(said?.childNodes ?? []));
    }
  }
}

function idOf(line: Element): string | null {
  return line.getAttribute('id');
}

export class StatusLine {
  readonly node: HTMLElement;
  private timer = 0;
  private words = '';

  /** @param words - are said once the line stands on the page */
  constructor(words = '', attributes: Record<string, string> = {}) {
    this.node = h('p', { ...attributes, role: 'status' });
    this.say(words);
  }

  /** Say something, instead of what was to be said; what was said last is not repeated. */
  say(words: string): void {
    if (words === this.words) {
      return;
    }
    this.words = words;
    window.clearTimeout(this.timer);
    this.timer = fillLater(this.node, words);
  }

  /** Say at once what changes on a line that a person has in sight. */
  write(words: string): void {
    this.words = words;
    window.clearTimeout(this.timer);
    setText(this.node, words);
  }
}
