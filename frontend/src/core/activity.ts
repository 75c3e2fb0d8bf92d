/** The one figure for what a GPU does: SM active, or where no GPM tells, NVML's. */

import type { Device } from '../shapes/protocol';
import { mark, trans } from './translation';

export interface Activity {
  readonly metric: string;
  readonly label: string;
  /** For a line that has little room. */
  readonly short: string;
}

const SM_ACTIVE: Activity = {
  metric: 'sm_active_ratio',
  label: mark('SM active'),
  short: 'SM'
};
const UTILIZATION: Activity = {
  metric: 'gpu_utilization_ratio',
  label: mark('GPU util. (NVML)'),
  short: mark('GPU util. (NVML)')
};

/** Whether GPM tells what the chip does. */
export function hasGpm(gpu: Device): boolean {
  return gpu.metrics.some(
    ({ name, state }) => name === SM_ACTIVE.metric && state === 'ok'
  );
}

/** What the chip does where GPM tells, otherwise what NVML calls utilization. */
export function activityOf(gpu: Device): Activity {
  const { metric, label, short } = hasGpm(gpu) ? SM_ACTIVE : UTILIZATION;
  return { metric, label: trans.__(label), short: trans.__(short) };
}
