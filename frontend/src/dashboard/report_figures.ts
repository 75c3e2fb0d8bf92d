/** The figures of a cell's profile: those to read first, and the rest in groups. */

import { h } from '../dom';
import { clip, count, duration, NONE, share, text } from '../format';
import type { BareRun, CellProfile, Metrics } from '../protocol';
import { figures } from './table';

type Figures = [string, string][];

/** What the profiler took of the window changes no share if it is less. */
const TOLD_SHARE = 0.01;

/** The figures to read first. */
export function headline(profile: CellProfile): HTMLElement {
  const { metrics, repeats, bare } = profile;
  const ofGpu: Figures = [
    ['GPU busy', `${duration(profile.gpu_busy_ms)} (${busyShare(profile)})`],
    [
      'Kernels',
      metrics === null
        ? NONE
        : `${count(metrics.kernels)} in ${ns(metrics.kernel_time_ns)}`
    ],
    ['Launches', called(profile.launches, profile.launch_api_ms)],
    [
      'Waits for the GPU',
      called(profile.synchronizations, profile.synchronization_ms)
    ],
    ['Peak memory', text(profile.peak_allocated_bytes, 'bytes')],
    ['Peak reserved', text(profile.peak_reserved_bytes, 'bytes')]
  ];
  const ofLines: Figures =
    profile.lines_cost_ms === null
      ? []
      : [['To note the lines', `about ${duration(profile.lines_cost_ms)}`]];
  const ofRepeats: Figures =
    repeats === null
      ? []
      : [
          ['Without the profiler', fastest(repeats.bare_ms)],
          ['With it', fastest(repeats.profiled_ms)],
          ['Warm-ups', count(repeats.warm_ups)]
        ];
  const ofTime: Figures =
    bare === null
      ? [['Duration', duration(profile.wall_ms)]]
      : [
          ['Time', clip(bare.sentence, 400)],
          ['Profiled', duration(profile.wall_ms)]
        ];
  return figures([
    ...ofTime,
    ...ofRepeats,
    ...(profile.gpu_name === null ? [] : ofGpu),
    ...ofLines
  ]);
}

/** The figures behind the verdict, in groups; nothing where the GPU was not seen. */
export function figureGroups({
  metrics,
  bare
}: CellProfile): HTMLElement | null {
  if (metrics === null) {
    return null;
  }
  const groups: [string, Figures][] = [
    ['Without the profiler', bare === null ? [] : bareRun(bare)],
    ['Time of the GPU', gpuTime(metrics)],
    ['Launches and waits', launches(metrics)],
    ['Copies and communication', traffic(metrics)],
    ['Kernels', kernels(metrics)]
  ];
  return h(
    'div',
    { class: 'wb-groups' },
    ...groups
      .filter(([, rows]) => rows.length > 0)
      .map(([title, rows]) =>
        h(
          'section',
          { 'aria-label': title },
          h('h4', {}, title),
          h(
            'dl',
            {},
            ...rows.flatMap(([label, value]) => [
              h('dt', {}, label),
              h('dd', {}, value)
            ])
          )
        )
      )
  );
}

const LIMITS: Readonly<Record<BareRun['limit'], string>> = {
  GPU: 'the GPU',
  host: 'the host',
  between: 'the GPU at the low end, the host at the high end'
};

/** The run that the verdict is about; it was replayed from the profiled one. */
function bareRun(bare: BareRun): Figures {
  const { basis, idle } = bare;
  const windowNs =
    bare.gpu_busy_ns + idle.host_wait_ns + idle.kernel_wait_ns + idle.other_ns;
  const part = (nanoseconds: number): string =>
    windowNs > 0
      ? `${ns(nanoseconds)} (${share(nanoseconds / windowNs)})`
      : ns(nanoseconds);
  const measured = basis === 'measured';
  const causes: Figures = [
    ['Idle after a wait for the GPU', idle.host_synchronize_ns],
    ['Idle while the host launched', idle.host_launching_ns],
    ['Idle while it was in operators', idle.host_operator_ns],
    ['Idle while it was in other CUDA calls', idle.host_api_ns],
    ['Idle while it was in Python or other code', idle.host_python_ns],
    ['Idle between kernels', idle.kernel_wait_ns],
    ['Idle, other', idle.other_ns]
  ]
    .filter((each): each is [string, number] => Number(each[1]) > 0)
    .map(([label, nanoseconds]) => [label, part(nanoseconds)]);
  return [
    [measured ? 'Median' : 'Judged at', ns(bare.time_ns)],
    [
      measured ? 'Spread' : 'Range',
      `${ns(bare.low_ns)} to ${ns(bare.high_ns)}`
    ],
    [
      'Basis',
      measured
        ? `${count(bare.runs)} without the profiler`
        : "a replay, less the profiler's part"
    ],
    ['Limited by', LIMITS[bare.limit]],
    ['Busy', part(bare.gpu_busy_ns)],
    ...causes
  ];
}

export function busyShare(profile: CellProfile): string {
  const { gpu_busy_ms: busy, wall_ms: wall } = profile;
  return busy === null || !(wall > 0) ? NONE : share(busy / wall);
}

function gpuTime(metrics: Metrics): Figures {
  const { idle, window_ns: window } = metrics;
  const part = (value: number) =>
    window > 0 ? `${ns(value)} (${share(value / window)})` : ns(value);
  const did: [string, number][] = [
    ['– the host had waited for the GPU', idle.host_synchronize_ns],
    ['– the host launched', idle.host_launching_ns],
    ['– the host was in operators', idle.host_operator_ns],
    ['– the host was in other CUDA calls', idle.host_api_ns],
    ['– the host was in Python or other code', idle.host_python_ns]
  ];
  const ofProfiler: Figures =
    idle.profiler_ns >= TOLD_SHARE * window && window > 0
      ? [["– less the profiler's part", ns(window - idle.profiler_ns)]]
      : [];
  return [
    ['Window, profiled', ns(window)],
    ...ofProfiler,
    ['Busy', part(metrics.gpu_busy_ns)],
    ['Idle, waiting for the host', part(idle.host_wait_ns)],
    ...did
      .filter(([, value]) => value > 0)
      .map(([label, value]): [string, string] => [label, part(value)]),
    ['Idle between kernels', part(idle.kernel_wait_ns)],
    ['Idle, other', part(idle.other_ns - idle.profiler_ns)],
    ['Idle, for the profiler', part(idle.profiler_ns)]
  ];
}

function launches(metrics: Metrics): Figures {
  const { launch, synchronizations } = metrics;
  const ofLaunches: Figures =
    metrics.launches === 0
      ? []
      : [
          ['Launches', count(metrics.launches)],
          ['Cost on the host', sum(launch.cost_ns, launch.cost_median_ns)],
          [
            'Latency of an empty stream',
            sum(launch.latency_ns, launch.latency_median_ns)
          ],
          [
            'Queue delay',
            sum(launch.queue_delay_ns, launch.queue_delay_median_ns)
          ]
        ];
  const ofWaits: Figures =
    synchronizations === 0
      ? []
      : [
          [
            'Waits for the GPU',
            `${count(synchronizations)} for ${ns(metrics.synchronization_ns)}`
          ]
        ];
  return [...ofLaunches, ...ofWaits];
}

function traffic(metrics: Metrics): Figures {
  const part = (
    label: string,
    all: number,
    hidden: number,
    exposed: number
  ): Figures =>
    all === 0
      ? []
      : [
          [label, ns(all)],
          ['– hidden by kernels', ns(hidden)],
          ['– exposed', ns(exposed)]
        ];
  return [
    ...part(
      'Copies',
      metrics.copy_ns,
      metrics.copy_compute_overlap_ns,
      metrics.exposed_copy_ns
    ),
    ...part(
      'Communication',
      metrics.communication_ns,
      metrics.communication_compute_overlap_ns,
      metrics.exposed_communication_ns
    )
  ];
}

function kernels(metrics: Metrics): Figures {
  const { kernel_time_ns: time, tensor_core_unknown_ns: unknown } = metrics;
  if (metrics.kernels === 0) {
    return [];
  }
  const tensor = share(metrics.tensor_core_share);
  return [
    ['Kernel time', `${ns(time)} in ${count(metrics.kernels)} kernels`],
    [
      'Tensor cores, of kernel time',
      unknown > 0 && time > 0
        ? `${tensor} (${share(unknown / time)} not known)`
        : tensor
    ],
    ['Occupancy, estimated', share(metrics.occupancy_share)],
    ['FLOPs, modelled', flops(metrics)],
    ['Bytes, modelled at least', text(metrics.modelled_bytes, 'bytes')]
  ];
}

function flops(metrics: Metrics): string {
  const {
    flops: all,
    modelled_share: modelled,
    kernel_time_ns: time
  } = metrics;
  if (all === null) {
    return modelled === null
      ? 'not known (no shapes were recorded)'
      : 'not known (no operator here has a formula)';
  }
  const seconds = ((modelled ?? 0) * time) / 1e9;
  const rate = seconds > 0 ? `, ${flop(all / seconds)}/s` : '';
  return `${flop(all)} in ${share(modelled)} of kernel time${rate}`;
}

function flop(value: number): string {
  for (const [prefix, size] of [
    ['T', 1e12],
    ['G', 1e9],
    ['M', 1e6]
  ] as const) {
    if (value >= size) {
      return `${Number((value / size).toPrecision(3))}\u00a0${prefix}FLOP`;
    }
  }
  return `${value.toFixed(0)}\u00a0FLOP`;
}

function called(calls: number | null, ms: number | null): string {
  return calls === null ? NONE : `${count(calls)} in ${duration(ms)}`;
}

function fastest(times: readonly number[]): string {
  return times.length === 0
    ? NONE
    : `${duration(Math.min(...times))} (fastest of ${times.length})`;
}

function sum(total: number, median: number | null): string {
  return median === null ? NONE : `${ns(median)} median, ${ns(total)} in all`;
}

function ns(value: number): string {
  return duration(value / 1e6);
}
