/** Parts of a page that are drawn anew by the service when something has changed. */

import { keepLines } from '../core/status';
import { fillTimes } from './forms';
import { pageNow } from './page';
import { showTimes } from './times';

let isAsking = false;
let isWanted = false;
let isLeaving = false;
/** What a part was drawn from, before its times were written anew. */
const drawnFrom = new WeakMap<Element, string>();

/**
 * Draw nothing anew of a page that is left: what it is about may be gone.
 * @param leaving - a form is sent that goes on to another page
 */
export function leave(leaving: boolean): void {
  isLeaving = leaving;
}

/** Draw all parts anew that carry `data-live`; several wishes at once are one. */
export async function refresh(): Promise<void> {
  isWanted = document.querySelector('[data-live]') !== null;
  if (isAsking || isLeaving) {
    return;
  }
  isAsking = true;
  try {
    while (isWanted && !isLeaving) {
      isWanted = false;
      put(await pageNow());
      // a class at its deadline changes all the time
      await new Promise(resolve => setTimeout(resolve, 400));
    }
  } catch {
    // the service is away; the socket tells when it is back
  } finally {
    isAsking = false;
  }
}

function put(page: Document | null): void {
  if (page === null) {
    return;
  }
  for (const old of document.querySelectorAll<HTMLElement>('[data-live]')) {
    const now = page.getElementById(old.id);
    // what somebody types in stays
    const isUsed =
      isTyped(old) || old.querySelector('details[open] form') !== null;
    if (now === null || isUsed || now.innerHTML === drawnFrom.get(old)) {
      continue;
    }
    const copy = document.importNode(now, true);
    drawnFrom.set(copy, now.innerHTML);
    showTimes(copy);
    fillTimes(copy);
    keepLines(old, copy);
    old.replaceWith(copy);
  }
}

function isTyped(part: HTMLElement): boolean {
  const active = document.activeElement;
  if (part.contains(active) && active?.matches('input, textarea, select')) {
    return true;
  }
  // times are filled in by us
  const controls = part.querySelectorAll<
    HTMLInputElement | HTMLTextAreaElement
  >('input:not([data-ms]), textarea');
  return [...controls].some(control => control.value !== control.defaultValue);
}
