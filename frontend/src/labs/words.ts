/** Somebody else's words: bounded, without control characters, code marked as code. */

import { h } from '../core/dom';
import { clip } from '../core/format';

const MOST_WORDS = 600;
const MOST_PARAGRAPH = 2000;
const MOST_TEXT = 20_000;
/** What a fence holds is every other part of a split. */
const FENCED = /^```\w*\n([\s\S]*?)\n```$/m;
const CODE = /`([^`]+)`/g;

/** Bounded, and without control characters. */
export function safe(words: string, most = MOST_WORDS): string {
  return clip(words.replace(/\p{C}/gu, '?'), most);
}

/** Paragraphs, and code between fences, of a text in a lab's own words. */
export function blocks(text: string): HTMLElement[] {
  return clip(text, MOST_TEXT)
    .split(FENCED)
    .flatMap((part, place): HTMLElement[] =>
      place % 2 === 1
        ? [h('pre', { tabindex: '0' }, part)]
        : part
            .split('\n\n')
            .map(words => words.trim().replace(/\s+/g, ' '))
            .filter(words => words !== '')
            .map(words => h('p', {}, ...marked(words, MOST_PARAGRAPH)))
    );
}

/** Text nodes, with an element for what is between two backticks. */
export function marked(words: string, most = MOST_WORDS): (Node | string)[] {
  const text = safe(words, most);
  const parts: (Node | string)[] = [];
  let end = 0;
  for (const match of text.matchAll(CODE)) {
    parts.push(text.slice(end, match.index), h('code', {}, match[1] ?? ''));
    end = match.index + match[0].length;
  }
  return [...parts, text.slice(end)].filter(part => part !== '');
}

/** An event of the page: somebody wants the lab that its detail names. */
export const ASK_FOR_LAB = 'warpbook:ask-for-lab';
