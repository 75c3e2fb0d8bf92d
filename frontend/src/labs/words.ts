/** Somebody else's words: bounded, without control characters, code marked as code. */

import { h } from '../dom';
import { clip } from '../format';

const MOST_WORDS = 600;
const CODE = /`([^`]+)`/g;

/** Bounded, and without control characters. */
export function safe(words: string, most = MOST_WORDS): string {
  return clip(words.replace(/\p{C}/gu, '?'), most);
}

/** Text nodes, with an element for what is between two backticks. */
export function marked(words: string, most = MOST_WORDS): (Node | string)[] {
  const text = safe(words, most);
  const parts: (Node | string)[] = [];
  let end = 0;
  for (const found of text.matchAll(CODE)) {
    parts.push(text.slice(end, found.index), h('code', {}, found[1] ?? ''));
    end = found.index + found[0].length;
  }
  return [...parts, text.slice(end)].filter(each => each !== '');
}
