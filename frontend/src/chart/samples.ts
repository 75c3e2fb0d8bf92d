/** What a chart draws of one device: rows of the store, or steps that sum rows up. */

import type { Detail } from '../shapes/protocol';
import type { Store } from '../core/store';
import type { Span } from '../core/viewport';

/** One metric at the times of its samples; NaN where there is no reading. */
export interface Column {
  readonly mean: ArrayLike<number>;
  /** What lay between, where a sample sums up more than one reading. */
  readonly range: {
    readonly least: ArrayLike<number>;
    readonly most: ArrayLike<number>;
  } | null;
}

export interface Samples {
  readonly times: number[];
  column(metric: string): Column | null;
}

/** Give the store's rows in a span, the same times for every device. */
export function storedSamples(
  store: Store,
  { fromMs, toMs }: Span
): (device: string) => Samples {
  const [start, end] = store.range(fromMs, toMs + 1);
  const times = Array.from(store.times(start, end));
  return device => ({
    times,
    column: metric => {
      const mean = store.column(device, metric, start, end);
      return mean === null ? null : { mean, range: null };
    }
  });
}

/** Give the server's steps, each at its middle. */
export function detailSamples(detail: Detail): Samples {
  const steps = Math.max(
    0,
    ...Object.values(detail.columns).map(({ mean }) => mean.length)
  );
  const times = Array.from(
    { length: steps },
    (_, step) => detail.from_ms + (step + 0.5) * detail.step_ms
  );
  const columns = new Map(
    Object.entries(detail.columns).map(([name, { least, mean, most }]) => [
      name,
      {
        mean: numbers(mean),
        range: { least: numbers(least), most: numbers(most) }
      }
    ])
  );
  return { times, column: metric => columns.get(metric) ?? null };
}

function numbers(values: readonly (number | null)[]): Float64Array {
  return Float64Array.from(values, value => value ?? NaN);
}
