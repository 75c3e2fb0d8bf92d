/** How long a stream that works may say nothing. */

const AT_LEAST_MS = 5_000;
const PERIODS = 3;

/** Three periods of its rate, but no less than a busy server may take. */
export function longestSilenceMs(rateHz: number): number {
  return Math.max(AT_LEAST_MS, (PERIODS * 1000) / rateHz);
}
