// Generated from extension/warpbook/*protocol.py. Do not edit.

import type { Check, Shape } from './checks';
import * as check from './checks';
import type * as types from './protocol';

export const isAbsence: Shape<types.Absence> = check.record<types.Absence>({
  what: check.text,
  reason: check.text,
  message: check.text,
  remedy: check.text,
}, {
  remedy: "",
});

export const isActClosed: Shape<types.ActClosed> = check.record<types.ActClosed>({
  type: check.oneOf('act_closed'),
  id: check.text,
});

export const isActRequest: Shape<types.ActRequest> = check.record<types.ActRequest>({
  type: check.oneOf('act_request'),
  id: check.text,
  act: check.text,
  assistant: check.text,
  kernel_id: check.text,
  cell_id: check.optional(check.text),
  change: check.text,
  lab: check.text,
  source: check.text,
}, {
  kernel_id: "",
  cell_id: null,
  change: "",
  lab: "",
  source: "",
});

export const isAlert: Shape<types.Alert> = check.record<types.Alert>({
  id: check.text,
  rule: check.text,
  severity: check.text,
  device: check.optional(check.text),
  title: check.text,
  text: check.text,
  since_ms: check.number,
  until_ms: check.optional(check.number),
  kernel_id: check.optional(check.text),
  is_replay: check.flag,
}, {
  until_ms: null,
  kernel_id: null,
  is_replay: false,
});

export const isAlerts: Shape<types.Alerts> = check.record<types.Alerts>({
  type: check.oneOf('alerts'),
  time_ms: check.number,
  alerts: check.list(isAlert, 1000),
});

export const isAllocator: Shape<types.Allocator> = check.record<types.Allocator>({
  index: check.whole,
  uuid: check.optional(check.text),
  allocated_bytes: check.whole,
  reserved_bytes: check.whole,
  peak_allocated_bytes: check.whole,
  retries: check.whole,
});

export const isAnnotationRow: Shape<types.AnnotationRow> = check.record<types.AnnotationRow>({
  name: check.text,
  times: check.whole,
  host_ns: check.whole,
  gpu_ns: check.optional(check.whole),
  work: check.optional(check.whole),
});

export const isIdleSplit: Shape<types.IdleSplit> = check.record<types.IdleSplit>({
  host_wait_ns: check.whole,
  kernel_wait_ns: check.whole,
  other_ns: check.whole,
  profiler_ns: check.whole,
  host_synchronize_ns: check.whole,
  host_launching_ns: check.whole,
  host_operator_ns: check.whole,
  host_api_ns: check.whole,
  host_python_ns: check.whole,
});

export const isBareRun: Shape<types.BareRun> = check.record<types.BareRun>({
  basis: check.text,
  time_ns: check.whole,
  low_ns: check.whole,
  high_ns: check.whole,
  limit: check.text,
  gpu_busy_ns: check.whole,
  idle: isIdleSplit,
  profiled_ns: check.whole,
  runs: check.whole,
  source: check.optional(check.text),
  host_share: check.optional(check.number),
  between: check.list(check.text, 20),
  cautions: check.list(check.text, 20),
  sentence: check.text,
  calibration: check.text,
}, {
  runs: 0,
  source: null,
  host_share: null,
  between: [],
  cautions: [],
  sentence: "",
  calibration: "",
});

export const isBareTimes: Shape<types.BareTimes> = check.record<types.BareTimes>({
  runs: check.whole,
  median_ns: check.whole,
  least_ns: check.whole,
  most_ns: check.whole,
  source: check.text,
});

export const isCallNode: Shape<types.CallNode> = check.record<types.CallNode>({
  name: check.text,
  parent: check.whole,
  calls: check.whole,
  host_ns: check.whole,
  gpu_ns: check.optional(check.whole),
});

export const isCauseView: Shape<types.CauseView> = check.record<types.CauseView>({
  id: check.text,
  kind: check.text,
  label: check.text,
  share: check.text,
  share_ratio: check.number,
  evidence: check.text,
  advice: check.text,
  lab: check.optional(check.text),
  changes: check.list(check.text, 100000),
  rows: check.list(check.text, 100000),
});

export const isCellVerdict: Shape<types.CellVerdict> = check.record<types.CellVerdict>({
  kind: check.text,
  sentence: check.text,
  change: check.text,
  parts: check.list(check.text, 100000),
  change_at: check.optional(check.whole),
}, {
  change: "",
  parts: [],
  change_at: null,
});

export const isChange: Shape<types.Change> = check.record<types.Change>({
  name: check.text,
  title: check.text,
  evidence: check.text,
  basis: check.text,
  time_ns: check.optional(check.whole),
  low_ns: check.optional(check.whole),
  high_ns: check.optional(check.whole),
  speed_low: check.optional(check.number),
  speed_high: check.optional(check.number),
  reason: check.text,
  sentence: check.text,
  operator: check.optional(check.text),
  line: check.optional(check.whole),
  code: check.text,
  diff: check.text,
  lab: check.optional(check.text),
  parts: check.list(check.text, 100000),
  slices: check.list(check.text, 100000),
}, {
  operator: null,
  line: null,
  code: "",
  diff: "",
  lab: null,
  parts: [],
  slices: [],
});

export const isCompleteness: Shape<types.Completeness> = check.record<types.Completeness>({
  launches: check.whole,
  matched: check.whole,
  lanes_omitted: check.whole,
  warnings: check.list(check.text, 1000),
  corrupt: check.whole,
  profiler_ns: check.whole,
  refusal: check.text,
  linked_by: check.text,
}, {
  warnings: [],
  corrupt: 0,
  profiler_ns: 0,
  refusal: "",
  linked_by: "",
});

export const isCopyRow: Shape<types.CopyRow> = check.record<types.CopyRow>({
  kind: check.text,
  calls: check.whole,
  size_bytes: check.optional(check.whole),
  time_ns: check.whole,
  parts: check.list(check.text, 100000),
}, {
  parts: [],
});

export const isCpuUse: Shape<types.CpuUse> = check.record<types.CpuUse>({
  wall_ns: check.whole,
  thread_ns: check.whole,
  process_ns: check.whole,
  queued_ns: check.optional(check.whole),
  threads: check.whole,
  cores: check.whole,
});

export const isCpuTime: Shape<types.CpuTime> = check.record<types.CpuTime>({
  window_ns: check.whole,
  loading_ns: check.whole,
  operators_ns: check.whole,
  small_calls_ns: check.whole,
  python_ns: check.whole,
  waiting_ns: check.optional(check.whole),
  lost_ns: check.whole,
  communication_ns: check.whole,
  calls: check.whole,
  small_calls: check.whole,
  use: check.optional(isCpuUse),
  bare: check.optional(isBareTimes),
}, {
  use: null,
  bare: null,
});

export const isInterval: Shape<types.Interval> = check.record<types.Interval>({
  ratio: check.number,
  low: check.number,
  high: check.number,
});

export const isEdited: Shape<types.Edited> = check.record<types.Edited>({
  sentence: check.text,
  changes: check.list(check.text, 100),
  speed: check.optional(isInterval),
  code: check.text,
  diff: check.text,
  once: check.text,
}, {
  changes: [],
  speed: null,
  code: "",
  diff: "",
  once: "",
});

export const isFinding: Shape<types.Finding> = check.record<types.Finding>({
  kind: check.text,
  explains_ns: check.whole,
  share: check.number,
  evidence: check.text,
  change: check.text,
  bound_ns: check.optional(check.whole),
  topic: check.optional(check.text),
  part: check.text,
  is_far: check.flag,
}, {
  topic: null,
  part: "",
  is_far: false,
});

export const isGroupRow: Shape<types.GroupRow> = check.record<types.GroupRow>({
  name: check.text,
  calls: check.whole,
  host_ns: check.whole,
  gpu_ns: check.optional(check.whole),
});

export const isKernelRow: Shape<types.KernelRow> = check.record<types.KernelRow>({
  name: check.text,
  calls: check.whole,
  time_ns: check.whole,
  share_ratio: check.number,
  longest_ns: check.optional(check.whole),
  grid: check.optional(check.tuple(check.whole, check.whole, check.whole)),
  block: check.optional(check.tuple(check.whole, check.whole, check.whole)),
  other_shapes: check.whole,
  occupancy: check.optional(check.number),
  of_roof: check.optional(check.number),
  parts: check.list(check.text, 100000),
  lines: check.text,
}, {
  longest_ns: null,
  grid: null,
  block: null,
  other_shapes: 0,
  occupancy: null,
  of_roof: null,
  parts: [],
  lines: "",
});

export const isLane: Shape<types.Lane> = check.record<types.Lane>({
  label: check.text,
  starts_ns: check.list(check.whole, 100000),
  durations_ns: check.list(check.whole, 100000),
  names: check.list(check.whole, 100000),
});

export const isLineRow: Shape<types.LineRow> = check.record<types.LineRow>({
  line: check.whole,
  code: check.text,
  times: check.whole,
  host_ns: check.whole,
  kernels: check.optional(check.whole),
  kernel_ns: check.optional(check.whole),
  copy_ns: check.optional(check.whole),
  wait_ns: check.optional(check.whole),
  idle_ns: check.optional(check.whole),
});

export const isMemoryCurve: Shape<types.MemoryCurve> = check.record<types.MemoryCurve>({
  device: check.whole,
  times_ns: check.list(check.whole, 100000),
  allocated_bytes: check.list(check.whole, 100000),
  reserved_bytes: check.list(check.whole, 100000),
  changes: check.whole,
  peak_allocated_bytes: check.whole,
  peak_ns: check.whole,
  peak_path: check.text,
  peak_line: check.optional(check.whole),
});

export const isMemoryUse: Shape<types.MemoryUse> = check.record<types.MemoryUse>({
  device: check.whole,
  peak_allocated_bytes: check.optional(check.whole),
  peak_reserved_bytes: check.optional(check.whole),
  allocated_bytes: check.whole,
  allocated_change_bytes: check.whole,
  reserved_bytes: check.whole,
  reserved_change_bytes: check.whole,
  fragmentation_share: check.optional(check.number),
  retries: check.whole,
  driver_allocations: check.whole,
});

export const isCollectiveTotal: Shape<types.CollectiveTotal> = check.record<types.CollectiveTotal>({
  name: check.text,
  ranks: check.whole,
  calls: check.whole,
  time_ns: check.whole,
  size_bytes: check.optional(check.whole),
  bus_bytes: check.optional(check.whole),
});

export const isCopyTotal: Shape<types.CopyTotal> = check.record<types.CopyTotal>({
  direction: check.text,
  host_memory: check.text,
  calls: check.whole,
  time_ns: check.whole,
  size_bytes: check.optional(check.whole),
  gb_per_s: check.optional(check.number),
});

export const isIdlePlace: Shape<types.IdlePlace> = check.record<types.IdlePlace>({
  cause: check.text,
  operator: check.optional(check.text),
  line: check.optional(check.whole),
  time_ns: check.whole,
});

export const isKernelWork: Shape<types.KernelWork> = check.record<types.KernelWork>({
  bound: check.text,
  time_ns: check.whole,
  kernels: check.whole,
  of_ceiling: check.optional(check.number),
  of_measured: check.optional(check.number),
  multiprocessors: check.optional(check.whole),
  multiprocessors_used: check.optional(check.number),
  kinds: check.optional(check.whole),
  far: check.optional(check.text),
  sampled: check.whole,
}, {
  of_measured: null,
  multiprocessors: null,
  multiprocessors_used: null,
  kinds: null,
  far: null,
  sampled: 0,
});

export const isLaunchTimes: Shape<types.LaunchTimes> = check.record<types.LaunchTimes>({
  cost_ns: check.whole,
  cost_median_ns: check.optional(check.number),
  latency_ns: check.whole,
  latency_median_ns: check.optional(check.number),
  queue_delay_ns: check.whole,
  queue_delay_median_ns: check.optional(check.number),
  step_ns: check.whole,
  early: check.whole,
});

export const isStreamIdle: Shape<types.StreamIdle> = check.record<types.StreamIdle>({
  device: check.whole,
  stream: check.whole,
  host_wait_ns: check.whole,
  kernel_wait_ns: check.whole,
  other_ns: check.whole,
});

export const isSyncTotal: Shape<types.SyncTotal> = check.record<types.SyncTotal>({
  name: check.text,
  operator: check.optional(check.text),
  line: check.optional(check.whole),
  calls: check.whole,
  time_ns: check.whole,
  stall_ns: check.whole,
});

export const isMetrics: Shape<types.Metrics> = check.record<types.Metrics>({
  window_ns: check.whole,
  gpu_span_ns: check.whole,
  gpu_busy_ns: check.whole,
  compute_ns: check.whole,
  copy_ns: check.whole,
  communication_ns: check.whole,
  communication_compute_overlap_ns: check.whole,
  copy_compute_overlap_ns: check.whole,
  exposed_communication_ns: check.whole,
  exposed_copy_ns: check.whole,
  idle: isIdleSplit,
  streams: check.list(isStreamIdle, 100000),
  launches: check.whole,
  launch: isLaunchTimes,
  kernels: check.whole,
  kernel_time_ns: check.whole,
  tensor_core_ns: check.whole,
  tensor_core_unknown_ns: check.whole,
  tensor_core_share: check.optional(check.number),
  occupancy_share: check.optional(check.number),
  synchronizations: check.whole,
  synchronization_ns: check.whole,
  sync_points: check.list(isSyncTotal, 100000),
  idle_places: check.list(isIdlePlace, 100000),
  copies: check.list(isCopyTotal, 100000),
  kernel_work: check.list(isKernelWork, 100000),
  flops: check.optional(check.whole),
  modelled_bytes: check.optional(check.whole),
  modelled_share: check.optional(check.number),
  exposed_host_copy_ns: check.optional(check.whole),
  collectives: check.list(isCollectiveTotal, 100000),
}, {
  exposed_host_copy_ns: null,
  collectives: [],
});

export const isOperatorRow: Shape<types.OperatorRow> = check.record<types.OperatorRow>({
  name: check.text,
  calls: check.whole,
  self_ns: check.whole,
});

export const isPathRow: Shape<types.PathRow> = check.record<types.PathRow>({
  path: check.text,
  calls: check.whole,
  time_ns: check.whole,
});

export const isRepeats: Shape<types.Repeats> = check.record<types.Repeats>({
  warm_ups: check.whole,
  bare_ns: check.list(check.whole, 100000),
  profiled_ns: check.list(check.whole, 100000),
});

export const isRoof: Shape<types.Roof> = check.record<types.Roof>({
  gpu: check.text,
  basis: check.text,
  memory_bytes_per_s: check.number,
  flops_per_s: check.map(check.number, 100000),
});

export const isRooflinePoint: Shape<types.RooflinePoint> = check.record<types.RooflinePoint>({
  name: check.text,
  operands: check.text,
  gpu: check.text,
  dtype: check.optional(check.text),
  calls: check.whole,
  time_ns: check.whole,
  share_ratio: check.number,
  flops: check.optional(check.whole),
  size_bytes: check.optional(check.whole),
  of_datasheet: check.optional(check.number),
  of_measured: check.optional(check.number),
});

export const isSetUp: Shape<types.SetUp> = check.record<types.SetUp>({
  imports_ns: check.whole,
  cuda_ns: check.whole,
  profiler_ns: check.whole,
});

export const isLineStalls: Shape<types.LineStalls> = check.record<types.LineStalls>({
  file: check.whole,
  line: check.whole,
  samples: check.whole,
  reasons: check.map(check.whole, 100000),
});

export const isPlace: Shape<types.Place> = check.record<types.Place>({
  file: check.whole,
  line: check.whole,
});

export const isKernelStalls: Shape<types.KernelStalls> = check.record<types.KernelStalls>({
  name: check.text,
  launches: check.whole,
  samples: check.whole,
  reasons: check.map(check.whole, 100000),
  lines: check.list(isLineStalls, 1000),
  unattributed: check.whole,
  language: check.text,
  origins: check.list(isPlace, 100),
}, {
  origins: [],
});

export const isSourceFile: Shape<types.SourceFile> = check.record<types.SourceFile>({
  name: check.text,
  text: check.text,
  digest: check.text,
});

export const isStalls: Shape<types.Stalls> = check.record<types.Stalls>({
  state: check.text,
  note: check.text,
  device: check.text,
  period_cycles: check.whole,
  seconds: check.number,
  dropped: check.whole,
  kernels: check.list(isKernelStalls, 100),
  files: check.list(isSourceFile, 100000),
}, {
  device: "",
  period_cycles: 0,
  seconds: 0.0,
  dropped: 0,
  kernels: [],
  files: [],
});

export const isStepRow: Shape<types.StepRow> = check.record<types.StepRow>({
  number: check.whole,
  time_ns: check.whole,
  busy_ns: check.optional(check.whole),
  mfu: check.optional(check.number),
}, {
  mfu: null,
});

export const isOutputDifference: Shape<types.OutputDifference> = check.record<types.OutputDifference>({
  name: check.text,
  dtype: check.text,
  compared: check.whole,
  largest_absolute: check.number,
  largest_relative: check.number,
  expected_relative: check.number,
  unchanged_relative: check.number,
  differs: check.flag,
  mismatch: check.optional(check.text),
}, {
  mismatch: null,
});

export const isTrial: Shape<types.Trial> = check.record<types.Trial>({
  name: check.text,
  outcome: check.text,
  sentence: check.text,
  refused: check.optional(check.text),
  speed: check.optional(isInterval),
  pairs: check.whole,
  unchanged_ns: check.optional(check.whole),
  changed_ns: check.optional(check.whole),
  difference: check.optional(isOutputDifference),
  promised: check.optional(check.tuple(check.number, check.number)),
  first_ns: check.optional(check.whole),
}, {
  refused: null,
  speed: null,
  pairs: 0,
  unchanged_ns: null,
  changed_ns: null,
  difference: null,
  promised: null,
  first_ns: null,
});

export const isWorkRow: Shape<types.WorkRow> = check.record<types.WorkRow>({
  kind: check.text,
  name: check.text,
  sizes: check.text,
  dtypes: check.text,
  calls: check.whole,
});

export const isWork: Shape<types.Work> = check.record<types.Work>({
  device: check.text,
  versions: check.map(check.text, 100000),
  steps: check.whole,
  time_ns: check.whole,
  busy_ns: check.whole,
  launches: check.whole,
  rows: check.list(isWorkRow, 1000),
});

export const isCellProfile: Shape<types.CellProfile> = check.record<types.CellProfile>({
  verdict: check.optional(isCellVerdict),
  findings: check.list(isFinding, 1000),
  metrics: check.optional(isMetrics),
  wall_ns: check.whole,
  profiler_ns: check.whole,
  first_start_ns: check.optional(check.whole),
  gpu_name: check.optional(check.text),
  gpu_busy_ns: check.optional(check.whole),
  kernel_calls: check.optional(check.whole),
  kernel_time_ns: check.optional(check.whole),
  copy_time_ns: check.optional(check.whole),
  launches: check.optional(check.whole),
  launch_api_ns: check.optional(check.whole),
  synchronizations: check.optional(check.whole),
  synchronization_ns: check.optional(check.whole),
  peak_allocated_bytes: check.optional(check.whole),
  peak_reserved_bytes: check.optional(check.whole),
  kernels: check.list(isKernelRow, 100000),
  copies: check.list(isCopyRow, 100000),
  operators: check.list(isOperatorRow, 100000),
  names: check.list(check.text, 100000),
  lanes: check.list(isLane, 100000),
  completeness: isCompleteness,
  memory: check.list(isMemoryUse, 200),
  repeats: check.optional(isRepeats),
  paths: check.list(isPathRow, 100000),
  lines: check.list(isLineRow, 100000),
  lines_cost_ns: check.optional(check.whole),
  set_up: check.optional(isSetUp),
  roofline: check.list(isRooflinePoint, 100000),
  roofs: check.list(isRoof, 100000),
  memory_curves: check.list(isMemoryCurve, 200),
  bare: check.optional(isBareRun),
  trials: check.list(isTrial, 100),
  edited: check.optional(isEdited),
  changes: check.list(isChange, 100),
  call_tree: check.list(isCallNode, 10000),
  modules: check.list(isGroupRow, 100000),
  functions: check.list(isGroupRow, 100000),
  steps: check.list(isStepRow, 100000),
  cpu: check.optional(isCpuTime),
  annotations: check.list(isAnnotationRow, 100000),
  autograd_nodes: check.optional(check.whole),
  work: check.optional(isWork),
  stalls: check.optional(isStalls),
}, {
  memory: [],
  repeats: null,
  paths: [],
  lines: [],
  lines_cost_ns: null,
  set_up: null,
  roofline: [],
  roofs: [],
  memory_curves: [],
  bare: null,
  trials: [],
  edited: null,
  changes: [],
  call_tree: [],
  modules: [],
  functions: [],
  steps: [],
  cpu: null,
  annotations: [],
  autograd_nodes: null,
  work: null,
  stalls: null,
});

export const isLine: Shape<types.Line> = check.record<types.Line>({
  name: check.text,
  part: check.text,
  question: check.text,
  answer: check.text,
  evidence: check.text,
  advice: check.text,
  lab: check.optional(check.text),
});

export const isChecklist: Shape<types.Checklist> = check.record<types.Checklist>({
  lines: check.list(isLine, 100),
  summary: check.text,
  warnings: check.list(check.text, 1000),
}, {
  warnings: [],
});

export const isClocks: Shape<types.Clocks> = check.record<types.Clocks>({
  sm_clock_mhz: check.optional(check.number),
  temperature_celsius: check.optional(check.number),
  slowed_by: check.list(check.text, 100000),
  is_throttled: check.flag,
});

export const isDifference: Shape<types.Difference> = check.record<types.Difference>({
  kind: check.text,
  name: check.text,
  sizes: check.text,
  dtypes: check.text,
  before_calls: check.number,
  after_calls: check.number,
});

export const isLikenessPart: Shape<types.LikenessPart> = check.record<types.LikenessPart>({
  name: check.text,
  score: check.optional(check.number),
  before: check.text,
  after: check.text,
});

export const isLikeness: Shape<types.Likeness> = check.record<types.Likeness>({
  score: check.optional(check.number),
  least_score: check.number,
  parts: check.list(isLikenessPart, 100),
  differing: check.list(isDifference, 100),
});

export const isPair: Shape<types.Pair> = check.record<types.Pair>({
  name: check.text,
  before_ns: check.optional(check.number),
  after_ns: check.optional(check.number),
  before_calls: check.optional(check.number),
  after_calls: check.optional(check.number),
}, {
  before_calls: null,
  after_calls: null,
});

export const isRowLinks: Shape<types.RowLinks> = check.record<types.RowLinks>({
  id: check.text,
  causes: check.list(check.text, 100000),
  changes: check.list(check.text, 100000),
  slice: check.text,
  stalls: check.text,
}, {
  stalls: "",
});

export const isTableCell: Shape<types.TableCell> = check.record<types.TableCell>({
  text: check.text,
  value: check.optional(check.number),
  bar: check.number,
}, {
  value: null,
  bar: 0.0,
});

export const isReportTable: Shape<types.ReportTable> = check.record<types.ReportTable>({
  title: check.text,
  name: check.text,
  header: check.list(check.text, 100),
  rows: check.list(check.list(isTableCell, 100), 10000),
  is_code: check.flag,
  links: check.list(isRowLinks, 100000),
}, {
  is_code: false,
  links: [],
});

export const isTime: Shape<types.Time> = check.record<types.Time>({
  basis: check.text,
  before_ns: check.number,
  after_ns: check.number,
  before_count: check.whole,
  after_count: check.whole,
  per_step: check.flag,
  change: check.number,
  low: check.number,
  high: check.number,
  noise: check.optional(check.number),
});

export const isTimePart: Shape<types.TimePart> = check.record<types.TimePart>({
  kind: check.optional(check.text),
  label: check.text,
  ratio: check.number,
  causes: check.list(check.text, 100000),
}, {
  causes: [],
});

export const isTimeBar: Shape<types.TimeBar> = check.record<types.TimeBar>({
  title: check.text,
  parts: check.list(isTimePart, 100),
});

export const isComparison: Shape<types.Comparison> = check.record<types.Comparison>({
  verdict: check.text,
  sentence: check.text,
  likeness: isLikeness,
  notes: check.list(check.text, 20),
  cautions: check.list(check.text, 20),
  time: check.optional(isTime),
  causes: check.list(isPair, 1000),
  paths: check.list(isPair, 1000),
  kernels: check.list(isPair, 1000),
  operators: check.list(isPair, 1000),
  explained: check.tuple(check.list(isTimePart, 100000), check.list(isTimePart, 100000)),
  clocks: check.tuple(check.optional(isClocks), check.optional(isClocks)),
  bars: check.list(isTimeBar, 2),
  tables: check.list(isReportTable, 100000),
}, {
  bars: [],
  tables: [],
});

export const isLiveWindow: Shape<types.LiveWindow> = check.record<types.LiveWindow>({
  start_ns: check.whole,
  end_ns: check.whole,
  steps: check.whole,
  recorded_ns: check.whole,
  bare_step_ns: check.optional(check.whole),
  gpu_busy_ns: check.optional(check.whole),
  kind: check.optional(check.text),
  sentence: check.text,
  launches: check.whole,
  matched: check.whole,
  overhead_ns: check.whole,
  merged: check.whole,
}, {
  merged: 1,
});

export const isSlowStep: Shape<types.SlowStep> = check.record<types.SlowStep>({
  step: check.whole,
  start_ns: check.whole,
  duration_ns: check.whole,
});

export const isStepTimes: Shape<types.StepTimes> = check.record<types.StepTimes>({
  steps: check.whole,
  median_ns: check.whole,
  p95_ns: check.whole,
  slowest_ns: check.whole,
  mean_ns: check.optional(check.whole),
});

export const isLive: Shape<types.Live> = check.record<types.Live>({
  elapsed_ns: check.whole,
  steps: check.whole,
  steps_by: check.optional(check.text),
  bare: check.optional(isStepTimes),
  profiled: check.optional(isStepTimes),
  slow_steps: check.list(isSlowStep, 100),
  slow_ns: check.whole,
  windows: check.list(isLiveWindow, 1000),
  verdict: check.optional(isCellVerdict),
  overhead_ns: check.whole,
  aim_share: check.number,
  setup_ns: check.optional(check.whole),
  notes: check.list(check.text, 100),
}, {
  notes: [],
});

export const isChangeView: Shape<types.ChangeView> = check.record<types.ChangeView>({
  id: check.text,
  name: check.text,
  heading: check.text,
  sentence: check.text,
  evidence: check.text,
  diff: check.text,
  lab: check.optional(check.text),
  acts_on: check.text,
  causes: check.list(check.text, 100000),
  rows: check.list(check.text, 100000),
});

export const isEditedView: Shape<types.EditedView> = check.record<types.EditedView>({
  sentence: check.text,
  diff: check.text,
  table: check.optional(isReportTable),
  can_be_placed: check.flag,
});

export const isLabelledFigure: Shape<types.LabelledFigure> = check.record<types.LabelledFigure>({
  label: check.text,
  value: check.text,
});

export const isFigureGroup: Shape<types.FigureGroup> = check.record<types.FigureGroup>({
  title: check.text,
  figures: check.list(isLabelledFigure, 100000),
});

export const isHeadline: Shape<types.Headline> = check.record<types.Headline>({
  kind: check.text,
  label: check.text,
  cause: check.text,
  change: check.text,
  causes: check.list(check.text, 100000),
  change_id: check.optional(check.text),
});

export const isStallReasonView: Shape<types.StallReasonView> = check.record<types.StallReasonView>({
  words: check.text,
  share: check.text,
  share_ratio: check.number,
  advice: check.text,
  lab: check.optional(check.text),
});

export const isKernelStallsView: Shape<types.KernelStallsView> = check.record<types.KernelStallsView>({
  id: check.text,
  name: check.text,
  sentence: check.text,
  reasons: check.list(isStallReasonView, 20),
  sources: check.list(isReportTable, 20),
  notes: check.list(check.text, 20),
  rows: check.list(check.text, 100000),
});

export const isStallsView: Shape<types.StallsView> = check.record<types.StallsView>({
  sentence: check.text,
  notes: check.list(check.text, 20),
  kernels: check.list(isKernelStallsView, 20),
});

export const isTableSection: Shape<types.TableSection> = check.record<types.TableSection>({
  title: check.text,
  tables: check.list(isReportTable, 100),
});

export const isTrialView: Shape<types.TrialView> = check.record<types.TrialView>({
  name: check.text,
  outcome: check.text,
  sentence: check.text,
});

export const isReportView: Shape<types.ReportView> = check.record<types.ReportView>({
  headline: check.optional(isHeadline),
  base: check.text,
  time: check.optional(isTimeBar),
  figures: check.list(isLabelledFigure, 1000),
  warnings: check.list(check.text, 1000),
  changes: check.list(isChangeView, 100),
  trials: check.list(isTrialView, 100),
  edited: check.optional(isEditedView),
  lines: check.optional(isReportTable),
  causes: check.list(isCauseView, 1000),
  sections: check.list(isTableSection, 100),
  groups: check.list(isFigureGroup, 100),
  stalls: check.optional(isStallsView),
  meanings: check.map(check.text, 100000),
}, {
  stalls: null,
  meanings: {},
});

export const isCellReport: Shape<types.CellReport> = check.record<types.CellReport>({
  type: check.oneOf('cell_report'),
  id: check.matching(/^[A-Za-z0-9-]{1,64}$/),
  protocol: check.whole,
  kernel_id: check.text,
  notebook: check.optional(check.text),
  cell_id: check.optional(check.text),
  execution_count: check.optional(check.whole),
  title: check.text,
  started_ms: check.number,
  ended_ms: check.number,
  status: check.text,
  profile: isCellProfile,
  gpus: check.list(check.text, 100000),
  notes: check.list(check.text, 20),
  difference: check.optional(isComparison),
  timeline_events: check.optional(check.whole),
  live: check.optional(isLive),
  file: check.optional(check.text),
  view: check.optional(isReportView),
  checklist: check.optional(isChecklist),
}, {
  gpus: [],
  notes: [],
  difference: null,
  timeline_events: null,
  live: null,
  file: null,
  view: null,
  checklist: null,
});

export const isCellRun: Shape<types.CellRun> = check.record<types.CellRun>({
  id: check.matching(/^[A-Za-z0-9-]{1,64}$/),
  protocol: check.whole,
  kernel_id: check.text,
  notebook: check.optional(check.text),
  cell_id: check.optional(check.text),
  execution_count: check.optional(check.whole),
  title: check.text,
  started_ms: check.number,
  ended_ms: check.number,
  status: check.text,
  allocators: check.list(isAllocator, 200),
}, {
  allocators: [],
});

export const isChecklistItem: Shape<types.ChecklistItem> = check.record<types.ChecklistItem>({
  name: check.text,
  question: check.text,
  lab: check.optional(check.text),
});

export const isChecklistEntry: Shape<types.ChecklistEntry> = check.record<types.ChecklistEntry>({
  items: check.list(isChecklistItem, 100),
  evidence: check.text,
  advice: check.text,
});

export const isChecklistGroup: Shape<types.ChecklistGroup> = check.record<types.ChecklistGroup>({
  answer: check.text,
  title: check.text,
  entries: check.list(isChecklistEntry, 100),
});

export const isChecklistView: Shape<types.ChecklistView> = check.record<types.ChecklistView>({
  summary: check.text,
  warnings: check.list(check.text, 1000),
  groups: check.list(isChecklistGroup, 20),
});

export const isCondition: Shape<types.Condition> = check.record<types.Condition>({
  name: check.text,
  severity: check.text,
  share_ratio: check.number,
  sentence: check.text,
});

export const isDetailColumn: Shape<types.DetailColumn> = check.record<types.DetailColumn>({
  least: check.list(check.optional(check.number), 10000),
  mean: check.list(check.optional(check.number), 10000),
  most: check.list(check.optional(check.number), 10000),
});

export const isDetail: Shape<types.Detail> = check.record<types.Detail>({
  device: check.text,
  from_ms: check.number,
  step_ms: check.number,
  columns: check.map(isDetailColumn, 200),
});

export const isMetric: Shape<types.Metric> = check.record<types.Metric>({
  name: check.text,
  unit: check.text,
  label: check.text,
  state: check.text,
  why: check.text,
}, {
  state: "ok",
  why: "",
});

export const isDevice: Shape<types.Device> = check.record<types.Device>({
  id: check.text,
  kind: check.text,
  name: check.text,
  index: check.optional(check.whole),
  origin: check.text,
  metrics: check.list(isMetric, 200),
  facts: check.map(check.either(check.text, check.number), 100000),
}, {
  facts: {},
});

export const isHolder: Shape<types.Holder> = check.record<types.Holder>({
  kind: check.text,
  name: check.text,
  used_bytes: check.optional(check.whole),
  pids: check.list(check.whole, 10000),
  kernel_id: check.optional(check.text),
  user: check.optional(check.text),
  execution_state: check.optional(check.text),
  idle_s: check.optional(check.number),
  allocated_bytes: check.optional(check.whole),
  reserved_bytes: check.optional(check.whole),
}, {
  pids: [],
  kernel_id: null,
  user: null,
  execution_state: null,
  idle_s: null,
  allocated_bytes: null,
  reserved_bytes: null,
});

export const isDeviceHolders: Shape<types.DeviceHolders> = check.record<types.DeviceHolders>({
  holders: check.list(isHolder, 1000),
  unattributed_bytes: check.optional(check.whole),
  notes: check.list(check.text, 20),
}, {
  notes: [],
});

export const isMetricSpan: Shape<types.MetricSpan> = check.record<types.MetricSpan>({
  mean: check.optional(check.number),
  least: check.optional(check.number),
  most: check.optional(check.number),
  covered_ratio: check.number,
});

export const isDeviceSpan: Shape<types.DeviceSpan> = check.record<types.DeviceSpan>({
  device: check.text,
  metrics: check.map(isMetricSpan, 200),
  energy_joules: check.optional(check.number),
  energy_basis: check.optional(check.text),
  conditions: check.list(isCondition, 20),
});

export const isVerdict: Shape<types.Verdict> = check.record<types.Verdict>({
  kind: check.text,
  sentence: check.text,
  rule: check.text,
  window_s: check.optional(check.number),
  since_ms: check.optional(check.number),
  is_changing: check.flag,
  unit: check.optional(check.text),
}, {
  window_s: null,
  since_ms: null,
  is_changing: false,
  unit: null,
});

export const isDeviceReceipt: Shape<types.DeviceReceipt> = check.record<types.DeviceReceipt>({
  span: isDeviceSpan,
  shared: check.optional(check.flag),
  notes: check.list(check.text, 20),
  verdict: check.optional(isVerdict),
}, {
  notes: [],
  verdict: null,
});

export const isDeviceReceiptView: Shape<types.DeviceReceiptView> = check.record<types.DeviceReceiptView>({
  name: check.text,
  table: check.optional(isReportTable),
  conditions: check.list(isCondition, 100),
  notes: check.list(check.text, 30),
});

export const isDevices: Shape<types.Devices> = check.record<types.Devices>({
  type: check.oneOf('devices'),
  time_ms: check.number,
  devices: check.list(isDevice, 200),
  absences: check.list(isAbsence, 200),
}, {
  absences: [],
});

export const isError: Shape<types.Error> = check.record<types.Error>({
  type: check.oneOf('error'),
  code: check.text,
  message: check.text,
});

export const isEvent: Shape<types.Event> = check.record<types.Event>({
  type: check.oneOf('event'),
  time_ms: check.number,
  device: check.text,
  kind: check.text,
  code: check.optional(check.whole),
  severity: check.text,
  title: check.text,
  meaning: check.text,
  remedy: check.text,
});

export const isReading: Shape<types.Reading> = check.record<types.Reading>({
  device: check.whole,
  state: check.text,
  values: check.list(check.optional(check.number), 200),
  why: check.text,
}, {
  values: [],
  why: "",
});

export const isFrame: Shape<types.Frame> = check.record<types.Frame>({
  type: check.oneOf('frame'),
  seq: check.whole,
  time_ms: check.number,
  readings: check.list(isReading, 200),
  label: check.optional(check.text),
}, {
  label: null,
});

export const isGap: Shape<types.Gap> = check.record<types.Gap>({
  type: check.oneOf('gap'),
  from_ms: check.number,
  to_ms: check.number,
  reason: check.text,
  message: check.text,
});

export const isHealth: Shape<types.Health> = check.record<types.Health>({
  type: check.oneOf('health'),
  time_ms: check.number,
  window_s: check.number,
  conditions: check.map(check.list(isCondition, 20), 200),
});

export const isReplay: Shape<types.Replay> = check.record<types.Replay>({
  name: check.text,
  recorded_ms: check.number,
  duration_ms: check.number,
  description: check.text,
});

export const isHello: Shape<types.Hello> = check.record<types.Hello>({
  type: check.oneOf('hello'),
  protocol: check.whole,
  version: check.text,
  time_ms: check.number,
  rate_hz: check.number,
  devices: check.list(isDevice, 200),
  absences: check.list(isAbsence, 200),
  replay: check.optional(isReplay),
}, {
  absences: [],
  replay: null,
});

export const isHolders: Shape<types.Holders> = check.record<types.Holders>({
  type: check.oneOf('holders'),
  time_ms: check.number,
  devices: check.map(isDeviceHolders, 200),
});

export const isKeeping: Shape<types.Keeping> = check.record<types.Keeping>({
  type: check.oneOf('keeping'),
  state: check.text,
  from_ms: check.optional(check.number),
  size_bytes: check.whole,
  message: check.text,
}, {
  message: "",
});

export const isKeptRecord: Shape<types.KeptRecord> = check.record<types.KeptRecord>({
  kind: check.text,
  id: check.text,
  started_ms: check.number,
  ended_ms: check.optional(check.number),
  notebook: check.optional(check.text),
  kernel_id: check.optional(check.text),
  cell_id: check.optional(check.text),
  title: check.text,
  verdict: check.optional(check.text),
  status: check.text,
  sentence: check.text,
  is_replay: check.flag,
}, {
  is_replay: false,
});

export const isMemoryOutlook: Shape<types.MemoryOutlook> = check.record<types.MemoryOutlook>({
  used_bytes: check.whole,
  total_bytes: check.whole,
  slope_bytes_per_s: check.optional(check.number),
  full_in_s: check.optional(check.number),
  sentence: check.text,
});

export const isOutlook: Shape<types.Outlook> = check.record<types.Outlook>({
  type: check.oneOf('outlook'),
  time_ms: check.number,
  window_s: check.number,
  devices: check.map(isMemoryOutlook, 200),
});

export const isPostMortem: Shape<types.PostMortem> = check.record<types.PostMortem>({
  type: check.oneOf('post_mortem'),
  time_ms: check.number,
  kernel_id: check.text,
  notebook: check.optional(check.text),
  cell_id: check.optional(check.text),
  device: check.optional(check.text),
  asked_bytes: check.optional(check.whole),
  holders: check.optional(isDeviceHolders),
  sentence: check.text,
});

export const isReceiptView: Shape<types.ReceiptView> = check.record<types.ReceiptView>({
  cell_line: check.text,
  is_held_back: check.flag,
  figures: check.list(isLabelledFigure, 20),
  devices: check.list(isDeviceReceiptView, 200),
  allocators: check.list(isFigureGroup, 200),
  notes: check.list(check.text, 20),
});

export const isReceipt: Shape<types.Receipt> = check.record<types.Receipt>({
  type: check.oneOf('receipt'),
  cell: isCellRun,
  wall_ms: check.number,
  devices: check.list(isDeviceReceipt, 200),
  line: check.text,
  previous: check.optional(value => isReceipt(value)),
  view: check.optional(isReceiptView),
}, {
  previous: null,
  view: null,
});

export const isRecordList: Shape<types.RecordList> = check.record<types.RecordList>({
  records: check.list(isKeptRecord, 1000),
  has_more: check.flag,
});

export const isSpanView: Shape<types.SpanView> = check.record<types.SpanView>({
  device: check.text,
  figures: check.list(isLabelledFigure, 20),
  coverage: check.text,
});

export const isSpanStatistics: Shape<types.SpanStatistics> = check.record<types.SpanStatistics>({
  from_ms: check.number,
  to_ms: check.number,
  devices: check.list(isDeviceSpan, 200),
  note: check.text,
  views: check.list(isSpanView, 200),
}, {
  views: [],
});

export const isTraceProgress: Shape<types.TraceProgress> = check.record<types.TraceProgress>({
  stage: check.text,
  detail: check.text,
  share: check.optional(check.number),
}, {
  detail: "",
  share: null,
});

export const isVerdicts: Shape<types.Verdicts> = check.record<types.Verdicts>({
  type: check.oneOf('verdicts'),
  time_ms: check.number,
  window_s: check.number,
  verdicts: check.map(isVerdict, 200),
});

export const MESSAGES: Record<types.ServerMessage['type'], Check> = {
  hello: isHello,
  devices: isDevices,
  frame: isFrame,
  gap: isGap,
  event: isEvent,
  error: isError,
  cell_report: isCellReport,
  verdicts: isVerdicts,
  health: isHealth,
  holders: isHolders,
  outlook: isOutlook,
  post_mortem: isPostMortem,
  receipt: isReceipt,
  alerts: isAlerts,
  keeping: isKeeping,
  act_request: isActRequest,
  act_closed: isActClosed,
};
