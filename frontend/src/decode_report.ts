/** The shape of a cell's profile, and of the comparison of two. */

import { later, list, number, optional, record, string, whole } from './checks';

const change = record({
  name: string,
  before_ms: optional(number),
  after_ms: optional(number),
  before_calls: optional(number),
  after_calls: optional(number)
});
export const comparison = record({
  sentence: string,
  notes: list(string, 20),
  cautions: list(string, 20),
  wall: change,
  causes: list(change, 1000),
  paths: list(change, 1000),
  kernels: list(change, 1000),
  operators: list(change, 1000)
});
const cellVerdict = record({ kind: string, sentence: string });
const finding = record({
  kind: string,
  explains_ns: number,
  share: number,
  evidence: string,
  change: string,
  bound_ns: optional(number),
  lab: optional(string)
});
const advised = record({
  name: string,
  title: string,
  evidence: string,
  basis: string,
  low_ns: optional(number),
  high_ns: optional(number),
  sentence: string,
  line: optional(whole),
  sketch: string,
  lab: optional(string)
});
const idle = record({
  host_wait_ns: number,
  kernel_wait_ns: number,
  other_ns: number,
  profiler_ns: number,
  host_synchronize_ns: number,
  host_launching_ns: number,
  host_operator_ns: number,
  host_api_ns: number,
  host_python_ns: number
});
const metrics = record({
  window_ns: number,
  gpu_busy_ns: number,
  copy_ns: number,
  communication_ns: number,
  communication_compute_overlap_ns: number,
  copy_compute_overlap_ns: number,
  exposed_communication_ns: number,
  exposed_copy_ns: number,
  idle,
  streams: list(
    record({
      device: whole,
      stream: whole,
      host_wait_ns: number,
      kernel_wait_ns: number,
      other_ns: number
    })
  ),
  launches: number,
  launch: record({
    cost_ns: number,
    cost_median_ns: optional(number),
    latency_ns: number,
    latency_median_ns: optional(number),
    queue_delay_ns: number,
    queue_delay_median_ns: optional(number)
  }),
  kernels: number,
  kernel_time_ns: number,
  tensor_core_unknown_ns: number,
  tensor_core_share: optional(number),
  occupancy_share: optional(number),
  synchronizations: number,
  synchronization_ns: number,
  sync_points: list(
    record({
      name: string,
      operator: optional(string),
      line: optional(whole),
      calls: number,
      time_ns: number,
      stall_ns: number
    })
  ),
  idle_places: list(
    record({
      cause: string,
      operator: optional(string),
      line: optional(whole),
      time_ns: number
    })
  ),
  kernel_work: list(
    record({
      bound: string,
      time_ns: number,
      kernels: number,
      of_ceiling: optional(number),
      of_measured: optional(number),
      multiprocessors: optional(whole),
      multiprocessors_used: optional(number)
    })
  ),
  copies: list(
    record({
      direction: string,
      host_memory: string,
      calls: number,
      time_ns: number,
      size_bytes: optional(number),
      gb_per_s: optional(number)
    })
  ),
  flops: optional(number),
  modelled_bytes: optional(number),
  modelled_share: optional(number)
});
const trial = record({
  name: string,
  outcome: string,
  sentence: string
});
const cpuTime = record({
  window_ns: number,
  loading_ns: number,
  operators_ns: number,
  small_calls_ns: number,
  python_ns: number,
  waiting_ns: optional(number),
  lost_ns: number,
  communication_ns: number,
  calls: number,
  small_calls: number,
  use: optional(record({ process_ns: number, threads: whole, cores: whole }))
});
const annotation = record({
  name: string,
  times: number,
  host_ms: number,
  gpu_ms: optional(number),
  work: optional(number)
});
export const profile = record({
  verdict: optional(cellVerdict),
  findings: list(finding, 1000),
  metrics: optional(metrics),
  wall_ms: number,
  profiler_ms: number,
  first_start_ms: optional(number),
  gpu_name: optional(string),
  gpu_busy_ms: optional(number),
  kernel_calls: optional(number),
  kernel_time_ms: optional(number),
  copy_time_ms: optional(number),
  launches: optional(number),
  launch_api_ms: optional(number),
  synchronizations: optional(number),
  synchronization_ms: optional(number),
  peak_allocated_bytes: optional(number),
  peak_reserved_bytes: optional(number),
  kernels: list(
    record({
      name: string,
      calls: number,
      time_ms: number,
      share_ratio: number
    })
  ),
  copies: list(
    record({
      kind: string,
      calls: number,
      size_bytes: optional(number),
      time_ms: number
    })
  ),
  operators: list(record({ name: string, calls: number, self_ms: number })),
  completeness: record({
    launches: number,
    matched: number,
    corrupt: number,
    profiler_ms: number,
    warnings: list(string, 1000)
  }),
  memory: list(
    record({
      device: whole,
      peak_allocated_bytes: optional(number),
      peak_reserved_bytes: optional(number),
      allocated_change_bytes: number,
      fragmentation_share: optional(number),
      retries: number,
      driver_allocations: number
    }),
    200
  ),
  repeats: optional(
    record({
      warm_ups: number,
      bare_ms: list(number),
      profiled_ms: list(number)
    })
  ),
  paths: list(record({ path: string, calls: number, time_ms: number })),
  lines: list(
    record({
      line: whole,
      code: string,
      times: number,
      host_ms: number,
      kernel_ms: optional(number),
      copy_ms: optional(number),
      wait_ms: optional(number),
      idle_ms: optional(number)
    })
  ),
  lines_cost_ms: optional(number),
  roofline: list(
    record({
      name: string,
      operands: string,
      dtype: optional(string),
      calls: number,
      time_ms: number,
      flops: optional(number),
      size_bytes: optional(number),
      of_datasheet: optional(number),
      of_measured: optional(number)
    })
  ),
  memory_curves: list(record({ device: whole }), 200),
  bare: optional(
    record({
      basis: string,
      time_ns: number,
      low_ns: number,
      high_ns: number,
      limit: string,
      gpu_busy_ns: number,
      idle,
      profiled_ns: number,
      runs: whole,
      source: optional(string),
      host_share: optional(number),
      between: list(string, 20),
      cautions: list(string, 20),
      sentence: string
    })
  ),
  trials: list(trial, 100),
  changes: list(advised, 100),
  cpu: later(optional(cpuTime)),
  annotations: later(list(annotation, 1000))
});
