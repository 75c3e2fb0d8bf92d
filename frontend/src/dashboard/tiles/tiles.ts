/** Which charts and figures a device gets, as tables; what is missing is said once. */

import type { ChartSpec, Line } from '../../chart/chart';
import { clip } from '../../core/format';
import type { Device, Metric } from '../../shapes/protocol';
import { because } from '../../core/words';
import { mark, trans } from '../../core/translation';

interface TileKind {
  readonly title: string;
  /** Metric names with the short label that the chart uses. */
  readonly lines: readonly (readonly [string, string])[];
  readonly hasForecast?: boolean;
  /** It takes two places where there are three in a row. */
  readonly isWide?: boolean;
  /** The device's fact that ends the value axis. */
  readonly topFact?: string;
  /** The device's fact that is drawn as a line, with its label. */
  readonly limitFact?: readonly [string, string];
}

const NVML: TileKind = {
  title: mark('NVML says'),
  lines: [
    ['gpu_utilization_ratio', mark('GPU utilization')],
    ['memory_utilization_ratio', mark('memory utilization')]
  ]
};
const CHIP: TileKind = {
  title: mark('What the chip does'),
  isWide: true,
  lines: [
    ['sm_active_ratio', mark('SM active')],
    ['sm_occupancy_ratio', mark('Occupancy')],
    ['tensor_active_ratio', mark('Tensor')],
    ['fp32_active_ratio', mark('FP32')],
    ['dram_active_ratio', mark('DRAM')]
  ]
};
const MEMORY: TileKind = {
  title: mark('Memory'),
  lines: [['memory_used_bytes', mark('used')]],
  topFact: 'memory_total_bytes',
  hasForecast: true
};
const PIPES: readonly TileKind[] = [
  {
    title: mark('Tensor pipes'),
    lines: [
      ['hmma_active_ratio', mark('HMMA (fp16, bf16, tf32, fp8)')],
      ['imma_active_ratio', mark('IMMA (integers)')],
      ['dfma_active_ratio', mark('DFMA (fp64)')]
    ]
  },
  {
    title: mark('CUDA-core pipes'),
    lines: [
      ['fp32_active_ratio', mark('FP32')],
      ['fp16_active_ratio', mark('FP16')],
      ['fp64_active_ratio', mark('FP64')],
      ['integer_active_ratio', mark('integer')]
    ]
  }
];
const BOARD: readonly TileKind[] = [
  MEMORY,
  {
    title: mark('Power'),
    lines: [['power_watts', mark('board')]],
    limitFact: ['power_limit_watts', mark('limit')]
  },
  {
    title: mark('Temperature'),
    lines: [
      ['temperature_celsius', mark('GPU')],
      ['memory_temperature_celsius', mark('memory')]
    ]
  },
  {
    title: mark('PCIe'),
    lines: [
      ['pcie_rx_bytes_per_s', mark('in')],
      ['pcie_tx_bytes_per_s', mark('out')]
    ]
  },
  {
    title: mark('NVLink'),
    lines: [
      ['nvlink_rx_bytes_per_s', mark('in')],
      ['nvlink_tx_bytes_per_s', mark('out')]
    ]
  },
  {
    title: mark('Clocks'),
    lines: [
      ['sm_clock_mhz', mark('SM')],
      ['memory_clock_mhz', mark('memory')]
    ]
  }
];
const VIDEO: TileKind = {
  title: mark('Video and images'),
  lines: [
    ['encoder_utilization_ratio', mark('encoder')],
    ['decoder_utilization_ratio', mark('decoder')],
    ['jpeg_utilization_ratio', mark('JPEG')],
    ['optical_flow_utilization_ratio', mark('optical flow')]
  ]
};
const HOST: readonly TileKind[] = [
  { title: mark('CPU'), lines: [['cpu_ratio', mark('all cores')]] },
  {
    title: mark('Host memory'),
    lines: [['memory_used_bytes', mark('used')]],
    topFact: 'memory_total_bytes'
  },
  {
    title: mark('Disk'),
    lines: [
      ['disk_read_bytes_per_s', mark('read')],
      ['disk_write_bytes_per_s', mark('written')]
    ]
  },
  {
    title: mark('Network'),
    lines: [
      ['network_rx_bytes_per_s', mark('in')],
      ['network_tx_bytes_per_s', mark('out')]
    ]
  }
];
/** What is a state or a count: its course over time says little. */
const FIGURES: readonly string[] = [
  'memory_free_bytes',
  'memory_reserved_bytes',
  'process_count',
  'performance_state',
  'pcie_link_generation',
  'pcie_link_width',
  'energy_joules',
  'ecc_corrected_count',
  'ecc_uncorrected_count',
  'ecc_corrected_lifetime_count',
  'ecc_uncorrected_lifetime_count',
  'remapped_rows_corrected_count',
  'remapped_rows_uncorrected_count',
  'remapped_rows_pending',
  'remapped_rows_failed',
  'retired_pages_count',
  'retired_pages_pending'
];

/** What is not there, for one reason. */
export interface Missing {
  readonly why: string;
  readonly what: readonly string[];
}

/** All that a device shows. */
export interface Layout {
  /** The views of activity, which belong side by side. */
  readonly activity: readonly ChartSpec[];
  readonly main: readonly ChartSpec[];
  /** What few need every day. */
  readonly more: readonly ChartSpec[];
  readonly figures: readonly Metric[];
  readonly missing: readonly Missing[];
  /** Whether what the chip does is known, and not only that something ran. */
  readonly knowsChip: boolean;
}

/** Lay out a device: charts where there are readings, words where there are none. */
export function layout(device: Device): Layout {
  const [activity, main, more] = kinds(device);
  const charts = (of: readonly TileKind[]) =>
    of.flatMap(kind => chart(kind, device));
  const figures = device.metrics.filter(
    ({ name, state }) => FIGURES.includes(name) && state === 'ok'
  );
  const known = charts([CHIP]).length > 0;
  const rest = {
    more: charts(more),
    figures,
    missing: missing([...activity, ...main, ...more], device),
    knowsChip: known
  };
  // what would stand alone stands among the others
  return charts(activity).length < 2
    ? { ...rest, activity: [], main: charts([...activity, ...main]) }
    : { ...rest, activity: charts(activity), main: charts(main) };
}

function kinds(
  device: Device
): readonly [readonly TileKind[], readonly TileKind[], readonly TileKind[]] {
  switch (device.kind) {
    case 'gpu':
      return [[NVML, CHIP], BOARD, [...PIPES, VIDEO]];
    case 'mig':
      return [[MEMORY, CHIP], [], PIPES];
    default:
      return [[], HOST, []];
  }
}

const HEIGHT = 118;

function chart(kind: TileKind, device: Device): ChartSpec[] {
  const lines = kind.lines.flatMap(([name, label]): Line[] => {
    const metric = device.metrics.find(candidate => candidate.name === name);
    return metric?.state === 'ok'
      ? [{ device, metric: name, label: trans.__(label), unit: metric.unit }]
      : [];
  });
  if (lines.length === 0) {
    return [];
  }
  const [fact, label] = kind.limitFact ?? ['', ''];
  const limit = numberFact(device, fact);
  return [
    {
      title: trans.__(kind.title),
      lines,
      top:
        lines[0]?.unit === 'ratio' ? 1 : numberFact(device, kind.topFact ?? ''),
      height: HEIGHT,
      ...(kind.isWide && { isWide: true }),
      ...(kind.hasForecast && { hasForecast: true }),
      ...(limit !== null && { limit: { label: trans.__(label), value: limit } })
    }
  ];
}

/** Say once what is missing, and why, for all charts and figures together. */
function missing(kinds: readonly TileKind[], device: Device): Missing[] {
  const reasons = new Map<string, Set<string>>();
  const lack = (why: string, what: string) =>
    reasons.set(why, (reasons.get(why) ?? new Set()).add(what));
  for (const { title, lines } of kinds) {
    const metrics = lines.map(([name, label]) => {
      const metric = device.metrics.find(candidate => candidate.name === name);
      return { label, metric };
    });
    const gone = metrics.filter(({ metric }) => metric?.state !== 'ok');
    const whys = new Set(gone.map(({ metric }) => why(metric, device)));
    // a whole chart that is gone for one reason has one name
    if (gone.length === metrics.length && whys.size === 1) {
      lack([...whys][0] ?? '', trans.__(title));
    } else {
      gone.forEach(({ label, metric }) =>
        lack(why(metric, device), `${trans.__(title)} (${trans.__(label)})`)
      );
    }
  }
  for (const metric of device.metrics) {
    if (FIGURES.includes(metric.name) && metric.state !== 'ok') {
      lack(why(metric, device), metric.label);
    }
  }
  return [...reasons].map(([why, what]) => ({ why, what: [...what] }));
}

function why(metric: Metric | undefined, device: Device): string {
  return metric !== undefined
    ? because(metric.state, metric.why)
    : device.origin === 'replay'
      ? trans.__('The recording does not hold it.')
      : trans.__('%1 does not report it.', clip(device.name, 60));
}

function numberFact(device: Device, name: string): number | null {
  const fact = device.facts[name];
  return typeof fact === 'number' && fact > 0 ? fact : null;
}
