/** A GPU's activity over the last time as a strip of colour. */

import type { Store } from '../../core/store';

/** As many fields as fit a narrow tile and can be told apart. */
const FIELDS = 40;

/** The mean activity of each field of a span, oldest first; NaN is no reading. */
export function heat(
  store: Store,
  device: string,
  metric: string,
  span: { readonly fromMs: number; readonly toMs: number }
): number[] {
  // fields begin at fixed times, so that only the newest changes until it is over
  const fieldMs = (span.toMs - span.fromMs) / FIELDS;
  const toMs = Math.ceil(span.toMs / fieldMs) * fieldMs;
  const fromMs = toMs - FIELDS * fieldMs;
  const sums = new Float64Array(FIELDS);
  const counts = new Uint32Array(FIELDS);
  const [start, end] = store.range(fromMs, toMs + 1);
  const times = store.times(start, end);
  const column = store.column(device, metric, start, end);
  times.forEach((ms, row) => {
    const field = Math.floor(((ms - fromMs) / (toMs - fromMs)) * FIELDS);
    const value = column?.[row] ?? NaN;
    if (field >= 0 && field < FIELDS && !Number.isNaN(value)) {
      sums[field] = (sums[field] ?? 0) + value;
      counts[field] = (counts[field] ?? 0) + 1;
    }
  });
  return Array.from(sums, (sum, field) => sum / (counts[field] ?? 0));
}

/** The strip as a CSS background; a field without a reading stays empty. */
export function heatBackground(fields: readonly number[]): string {
  const stops = fields.flatMap((ratio, field) => {
    const percent = Math.round(100 * Math.min(1, Math.max(0, ratio)));
    // none of it is seen apart from no reading
    const color = Number.isNaN(ratio)
      ? 'transparent'
      : `color-mix(in srgb, var(--wb-series-0) ${15 + percent * 0.85}%, var(--wb-surface))`;
    const at = (place: number) =>
      `${((100 * place) / fields.length).toFixed(1)}%`;
    return [`${color} ${at(field)}`, `${color} ${at(field + 1)}`];
  });
  return `linear-gradient(to right, ${stops.join(', ')})`;
}
