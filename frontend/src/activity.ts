/** The one figure for what a GPU does: SM active, or where no GPM tells, NVML's. */

import type { Device } from './protocol';

export interface Activity {
  readonly metric: string;
  readonly label: string;
  /** For a line that has little room. */
  readonly short: string;
}

const SM_ACTIVE: Activity = {
  metric: 'sm_active_ratio',
  label: 'SM active',
  short: 'SM'
};
const UTILIZATION: Activity = {
  metric: 'gpu_utilization_ratio',
  label: 'GPU util. (NVML)',
  short: 'GPU util. (NVML)'
};

/** Whether GPM tells what the chip does. */
export function hasGpm(gpu: Device): boolean {
  return gpu.metrics.some(
    ({ name, state }) => name === SM_ACTIVE.metric && state === 'ok'
  );
}

/** What the chip does where GPM tells, otherwise what NVML calls utilization. */
export function activityOf(gpu: Device): Activity {
  return hasGpm(gpu) ? SM_ACTIVE : UTILIZATION;
}
