/** Files that the page has, given to the browser to keep. */

import { h } from './dom';

/** Save a file where the browser puts downloads. */
export function saveFile(file: File): void {
  const url = URL.createObjectURL(file);
  h('a', { href: url, download: file.name }).click();
  // the browser reads it after this turn
  window.setTimeout(() => URL.revokeObjectURL(url), 60_000);
}
