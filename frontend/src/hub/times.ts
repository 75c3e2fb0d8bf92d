/** Times in the reader's own zone. */

const MINUTES: Intl.DateTimeFormatOptions = {
  year: 'numeric',
  month: 'short',
  day: 'numeric',
  hour: 'numeric',
  minute: '2-digit',
  // a date is nobody's without its zone
  timeZoneName: 'short'
};
const FORMAT = new Intl.DateTimeFormat(undefined, MINUTES);
const SECONDS = new Intl.DateTimeFormat(undefined, {
  ...MINUTES,
  second: '2-digit'
});
const EXACT = new Intl.DateTimeFormat(undefined, {
  ...MINUTES,
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
      const since = element.dataset['since'];
      const change =
        since === undefined ? '' : clockChange(new Date(since), at);
      element.textContent = format.format(at) + change;
      element.setAttribute('title', at.toISOString());
    }
  }
}

/** Write a time, or nothing. */
export function when(timeMs: number | null): string {
  return timeMs === null ? '' : FORMAT.format(new Date(timeMs));
}

/** Say that the clocks change between two times of a window; empty if not. */
function clockChange(from: Date, to: Date): string {
  const minutes = from.getTimezoneOffset() - to.getTimezoneOffset();
  if (minutes === 0) {
    return '';
  }
  const way = minutes > 0 ? 'forward' : 'back';
  return ` (by then the clocks have gone ${way} by ${Math.abs(minutes)} min)`;
}

/** Name the zone beside each control for a time, and whether the clocks change. */
export function nameZones(within: ParentNode): void {
  for (const input of within.querySelectorAll<HTMLInputElement>(
    'input[data-type=time]'
  )) {
    const label = input.closest('label');
    let note = label?.querySelector('.zone') ?? null;
    if (label !== null && note === null) {
      note = document.createElement('span');
      note.className = 'zone quiet';
      label.append(note);
    }
    const at = new Date(input.value);
    const first = input
      .closest('[data-item], form')
      ?.querySelector<HTMLInputElement>('input[data-type=time]');
    if (note !== null) {
      const change = clockChange(new Date(first?.value ?? input.value), at);
      const text = Number.isNaN(at.getTime()) ? '' : zone(at) + change;
      note.textContent = text;
    }
  }
}

function zone(at: Date): string {
  const parts = FORMAT.formatToParts(at);
  return parts.find(part => part.type === 'timeZoneName')?.value ?? '';
}

/** Write a time as `<input type="datetime-local">` holds it. */
export function localInput(timeMs: number): string {
  const at = new Date(timeMs);
  const local = new Date(at.getTime() - at.getTimezoneOffset() * 60_000);
  return local.toISOString().slice(0, 16);
}
