/** Times in the reader's own zone. */

const FORMAT = new Intl.DateTimeFormat(undefined, {
  dateStyle: 'medium',
  timeStyle: 'short'
});

/** Write all times of a part of the page in the browser's zone. */
export function showTimes(within: ParentNode): void {
  for (const element of within.querySelectorAll('time[datetime]')) {
    const at = new Date(element.getAttribute('datetime') ?? '');
    if (!Number.isNaN(at.getTime())) {
      element.textContent = FORMAT.format(at);
      element.setAttribute('title', at.toISOString());
    }
  }
}

/** Write a time, or nothing. */
export function when(timeMs: number | null): string {
  return timeMs === null ? '' : FORMAT.format(new Date(timeMs));
}

/** Write a time as `<input type="datetime-local">` holds it. */
export function localInput(timeMs: number): string {
  const at = new Date(timeMs);
  const local = new Date(at.getTime() - at.getTimezoneOffset() * 60_000);
  return local.toISOString().slice(0, 16);
}
