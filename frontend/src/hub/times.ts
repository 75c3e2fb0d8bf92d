/** Times in the reader's own zone. */

const FORMAT = new Intl.DateTimeFormat(undefined, {
  dateStyle: 'medium',
  timeStyle: 'short'
});
const SECONDS = new Intl.DateTimeFormat(undefined, {
  dateStyle: 'medium',
  timeStyle: 'medium'
});
const EXACT = new Intl.DateTimeFormat(undefined, {
  year: 'numeric',
  month: 'short',
  day: 'numeric',
  hour: 'numeric',
  minute: '2-digit',
  second: '2-digit',
  fractionalSecondDigits: 3
});
/** By the characters of the time of day, as the service wrote it. */
const BY_LENGTH: Readonly<Record<string, Intl.DateTimeFormat>> = {
  '8': SECONDS,
  '12': EXACT
};

/** Write all times of a part of the page in the browser's zone. */
export function showTimes(within: ParentNode): void {
  for (const element of within.querySelectorAll<HTMLElement>(
    'time[datetime]'
  )) {
    const at = new Date(element.getAttribute('datetime') ?? '');
    if (!Number.isNaN(at.getTime())) {
      const format = BY_LENGTH[element.dataset['length'] ?? ''] ?? FORMAT;
      element.textContent = format.format(at);
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
