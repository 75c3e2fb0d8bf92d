/** Which charts a device gets, as a table; a device without a metric says so. */

import type { ChartSpec } from '../chart/chart';
import type { Device, Metric } from '../protocol';
import { because } from '../words';

interface TileKind {
  readonly title: string;
  /** Metric names with the short label that the chart uses. */
  readonly lines: readonly (readonly [string, string])[];
  /** The device's fact that ends the value axis. */
  readonly topFact?: string;
  /** The device's fact that is drawn as a line, with its label. */
  readonly limitFact?: readonly [string, string];
}

const NVML: TileKind = {
  title: 'NVML says',
  lines: [['gpu_utilization_ratio', 'GPU utilization']]
};
const CHIP: TileKind = {
  title: 'What the chip does',
  lines: [
    ['sm_active_ratio', 'SM active'],
    ['sm_occupancy_ratio', 'Occupancy'],
    ['tensor_active_ratio', 'Tensor'],
    ['fp32_active_ratio', 'FP32'],
    ['dram_active_ratio', 'DRAM']
  ]
};
const MORE_OF_GPU: readonly TileKind[] = [
  {
    title: 'Memory',
    lines: [['memory_used_bytes', 'used']],
    topFact: 'memory_total_bytes'
  },
  {
    title: 'Power',
    lines: [['power_watts', 'board']],
    limitFact: ['power_limit_watts', 'limit']
  },
  {
    title: 'Temperature',
    lines: [['temperature_celsius', 'GPU']]
  },
  {
    title: 'PCIe',
    lines: [
      ['pcie_rx_bytes_per_s', 'in'],
      ['pcie_tx_bytes_per_s', 'out']
    ]
  },
  {
    title: 'NVLink',
    lines: [
      ['nvlink_rx_bytes_per_s', 'in'],
      ['nvlink_tx_bytes_per_s', 'out']
    ]
  },
  {
    title: 'Clocks',
    lines: [
      ['sm_clock_mhz', 'SM'],
      ['memory_clock_mhz', 'memory']
    ]
  }
];
const HOST: readonly TileKind[] = [
  { title: 'CPU', lines: [['cpu_ratio', 'all cores']] },
  {
    title: 'Host memory',
    lines: [['memory_used_bytes', 'used']],
    topFact: 'memory_total_bytes'
  },
  {
    title: 'Disk',
    lines: [
      ['disk_read_bytes_per_s', 'read'],
      ['disk_write_bytes_per_s', 'written']
    ]
  },
  {
    title: 'Network',
    lines: [
      ['network_rx_bytes_per_s', 'in'],
      ['network_tx_bytes_per_s', 'out']
    ]
  }
];

/** A chart, or the sentence that stands where it would be; or both. */
export interface Tile {
  readonly title: string;
  readonly chart: ChartSpec | null;
  readonly missing: string;
}

/** The two views of activity that belong side by side. */
export function activityTiles(gpu: Device): Tile[] {
  return [tile(NVML, gpu), tile(CHIP, gpu)];
}

/** The rest of what a device shows. */
export function otherTiles(device: Device): Tile[] {
  const kinds = device.kind === 'gpu' ? MORE_OF_GPU : HOST;
  return kinds.map(kind => tile(kind, device));
}

const HEIGHT = 118;

function tile(kind: TileKind, device: Device): Tile {
  const found = kind.lines.map(([name, label]) => ({
    label,
    metric: device.metrics.find(metric => metric.name === name)
  }));
  const lines = found.flatMap(({ label, metric }) =>
    metric?.state === 'ok'
      ? [{ device, metric: metric.name, label, unit: metric.unit }]
      : []
  );
  const chart: ChartSpec = {
    title: kind.title,
    lines,
    top:
      lines[0]?.unit === 'ratio' ? 1 : numberFact(device, kind.topFact ?? ''),
    height: HEIGHT
  };
  const [fact, label] = kind.limitFact ?? ['', ''];
  const limit = numberFact(device, fact);
  return {
    title: kind.title,
    chart:
      lines.length === 0
        ? null
        : limit === null
          ? chart
          : { ...chart, limit: { label, value: limit } },
    missing: missing(found, device)
  };
}

/** Say once what is missing, and why, for all lines of a tile together. */
function missing(
  found: readonly { label: string; metric: Metric | undefined }[],
  device: Device
): string {
  const gone = found.filter(({ metric }) => metric?.state !== 'ok');
  const reasons = new Map<string, string[]>();
  for (const { label, metric } of gone) {
    const reason =
      metric === undefined
        ? `${device.name} does not report it.`
        : because(metric.state, metric.why);
    reasons.set(reason, [...(reasons.get(reason) ?? []), label]);
  }
  return [...reasons]
    .map(([reason, labels]) =>
      labels.length === found.length
        ? reason
        : `${labels.join(', ')}: ${reason}`
    )
    .join(' ');
}

function numberFact(device: Device, name: string): number | null {
  const fact = device.facts[name];
  return typeof fact === 'number' && fact > 0 ? fact : null;
}
