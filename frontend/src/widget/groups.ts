/** Which charts a Monitor shows: the metrics asked for, one chart for each unit. */

import type { ChartSpec } from '../chart/chart';
import type { Device, Metric, Unit } from '../shapes/protocol';
import { because, deviceLabel } from '../core/words';

export const DEFAULT_METRICS = [
  'gpu_utilization_ratio',
  'sm_active_ratio',
  'tensor_active_ratio',
  'dram_active_ratio',
  'memory_used_bytes',
  'power_watts'
];

const TITLES: Record<Unit, string> = {
  ratio: 'Activity',
  bytes: 'Memory',
  bytes_per_s: 'Traffic',
  watts: 'Power',
  joules: 'Energy',
  celsius: 'Temperature',
  mhz: 'Clocks',
  hz: 'Rates',
  count: 'Counts',
  ms: 'Times',
  flags: 'Flags'
};
/** As many as chart.css has colours; more lines could not be told apart. */
const MOST_LINES = 5;

export interface Group {
  readonly device: Device;
  readonly charts: ChartSpec[];
  /** What was asked for and is not there, in words. */
  readonly missing: string[];
}

/** Lay out what was asked for; `gpu` null is all of them. */
export function groups(
  devices: readonly Device[],
  gpu: number | null,
  metrics: readonly string[] | null,
  height: number
): Group[] {
  const names = metrics ?? DEFAULT_METRICS;
  const gpus = devices.filter(
    device => device.kind === 'gpu' && (gpu === null || device.index === gpu)
  );
  // what only the host has, such as cpu_ratio, is shown of the host
  const ofGpus = (name: string) =>
    devices.some(
      ({ kind, metrics: own }) =>
        kind === 'gpu' && own.some(metric => metric.name === name)
    );
  const ofHost = names.filter(name => !ofGpus(name));
  const shown = gpus.map(device =>
    group(device, devices, names.filter(ofGpus), height)
  );
  const host = devices.find(({ kind }) => kind === 'host');
  if (metrics !== null && host !== undefined && ofHost.length > 0) {
    shown.push(group(host, devices, ofHost, height));
  }
  return shown;
}

function group(
  device: Device,
  devices: readonly Device[],
  names: string[],
  height: number
): Group {
  const byUnit = new Map<Unit, Metric[]>();
  const missing: string[] = [];
  for (const name of new Set(names)) {
    const metric = device.metrics.find(candidate => candidate.name === name);
    if (metric === undefined) {
      missing.push(`${deviceLabel(device, devices)} has no metric “${name}”.`);
    } else if (metric.state !== 'ok') {
      missing.push(`${metric.label}: ${because(metric.state, metric.why)}`);
    } else {
      byUnit.set(metric.unit, [...(byUnit.get(metric.unit) ?? []), metric]);
    }
  }
  const total = device.facts['memory_total_bytes'];
  const limit = device.facts['power_limit_watts'];
  const charts = [...byUnit].flatMap(([unit, all]) => {
    const pieces: ChartSpec[] = [];
    for (let at = 0; at < all.length; at += MOST_LINES) {
      pieces.push({
        title: TITLES[unit] ?? unit,
        lines: all.slice(at, at + MOST_LINES).map(metric => ({
          device,
          metric: metric.name,
          label: metric.label,
          unit
        })),
        top:
          unit === 'ratio'
            ? 1
            : unit === 'bytes' && typeof total === 'number'
              ? total
              : null,
        height,
        ...(unit === 'watts' &&
          typeof limit === 'number' && {
            limit: { label: 'limit', value: limit }
          })
      });
    }
    return pieces;
  });
  return { device, charts, missing: [...new Set(missing)] };
}
