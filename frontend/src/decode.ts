/**
 * Text from the socket -> a message whose shape can be relied upon.
 *
 * The types of protocol.ts are promises of a server that may be older, newer or
 * not ours. What does not have the shape becomes null, and the page goes on.
 */

import type { Check } from './checks';
import { facts, list, number, optional, record, string, whole } from './checks';
import { comparison, profile, reportView } from './decode_report';
import type {
  Alert,
  CellReport,
  Comparison,
  Detail,
  PostMortem,
  Receipt,
  RecordList,
  ServerMessage,
  SpanStatistics
} from './protocol';
import { PROTOCOL_VERSION } from './protocol';

/** A hello that this page can't read, because it speaks another version. */
export interface OtherProtocol {
  readonly type: 'other_protocol';
  readonly protocol: number;
}

const metric = record({
  name: string,
  unit: string,
  label: string,
  state: string,
  why: string
});
const device = record({
  id: string,
  kind: string,
  name: string,
  index: optional(whole),
  origin: string,
  metrics: list(metric, 200),
  facts
});
const devices = list(device, 200);
const absence = record({
  what: string,
  reason: string,
  message: string,
  remedy: string
});
const absences = list(absence, 200);
const replay = record({
  name: string,
  recorded_ms: number,
  duration_ms: number,
  description: string
});
const reading = record({
  device: whole,
  state: string,
  values: list(optional(number), 200),
  why: string
});
const verdict = record({
  kind: string,
  sentence: string,
  rule: string,
  window_s: optional(number)
});
const condition = record({
  name: string,
  severity: string,
  share_ratio: number,
  sentence: string
});
const byDevice =
  (check: Check): Check =>
  value =>
    typeof value === 'object' &&
    value !== null &&
    Object.keys(value).length <= 200 &&
    Object.values(value).every(check);
const spanOfDevice = record({
  device: string,
  metrics: byDevice(
    record({
      mean: optional(number),
      least: optional(number),
      most: optional(number),
      covered_ratio: number
    })
  ),
  energy_joules: optional(number),
  energy_basis: optional(string),
  conditions: list(condition, 20)
});
const holder = record({
  kind: string,
  name: string,
  used_bytes: optional(number),
  pids: list(whole, 10_000),
  kernel_id: optional(string),
  user: optional(string),
  execution_state: optional(string),
  idle_s: optional(number),
  allocated_bytes: optional(number),
  reserved_bytes: optional(number)
});
const holders = record({
  holders: list(holder, 1000),
  unattributed_bytes: optional(number),
  notes: list(string, 20)
});
const outlook = record({
  used_bytes: number,
  total_bytes: number,
  slope_bytes_per_s: optional(number),
  full_in_s: optional(number),
  sentence: string
});
const alert = record({
  id: string,
  rule: string,
  severity: string,
  device: optional(string),
  title: string,
  text: string,
  since_ms: number,
  until_ms: optional(number),
  kernel_id: optional(string)
});
const receipt: Check = value =>
  record({
    cell: record({
      id: string,
      kernel_id: string,
      notebook: optional(string),
      cell_id: optional(string),
      execution_count: optional(whole),
      title: string,
      started_ms: number,
      ended_ms: number,
      status: string,
      allocators: list(
        record({
          index: whole,
          uuid: optional(string),
          allocated_bytes: number,
          reserved_bytes: number,
          peak_allocated_bytes: number,
          retries: number
        }),
        200
      )
    }),
    wall_ms: number,
    devices: list(
      record({
        span: spanOfDevice,
        shared: optional(value => typeof value === 'boolean'),
        notes: list(string, 20)
      }),
      200
    ),
    line: string,
    previous: optional(receipt)
  })(value);

const spanStatistics = record({
  from_ms: number,
  to_ms: number,
  devices: list(spanOfDevice, 200),
  note: string
});
const values = list(optional(number), 10_000);
const detail = record({
  device: string,
  from_ms: number,
  step_ms: number,
  columns: byDevice(record({ least: values, mean: values, most: values }))
});

/** Whether an answer of the server has the shape that it should have. */
export function isReceipt(value: unknown): value is Receipt {
  return receipt(value);
}

export function isSpanStatistics(value: unknown): value is SpanStatistics {
  return spanStatistics(value);
}

export function isComparison(value: unknown): value is Comparison {
  return comparison(value);
}

export function isDetail(value: unknown): value is Detail {
  return detail(value);
}

const stepTimes = record({
  steps: number,
  median_ms: number,
  p95_ms: number,
  slowest_ms: number,
  mean_ms: optional(number)
});
const live = record({
  elapsed_ms: number,
  steps: number,
  steps_by: optional(string),
  bare: optional(stepTimes),
  profiled: optional(stepTimes),
  slow_steps: list(
    record({ step: number, start_ms: number, duration_ms: number }),
    100
  ),
  slow_ms: number,
  windows: list(
    record({
      start_ms: number,
      end_ms: number,
      steps: number,
      recorded_ms: number,
      bare_step_ms: optional(number),
      gpu_busy_ms: optional(number),
      kind: optional(string),
      sentence: string,
      launches: number,
      matched: number,
      overhead_ms: number,
      merged: number
    }),
    1000
  ),
  verdict: optional(record({ kind: string, sentence: string })),
  overhead_ms: number,
  aim_share: number,
  setup_ms: optional(number),
  notes: list(string, 100)
});

const MESSAGES: Record<ServerMessage['type'], Check> = {
  hello: record({
    protocol: whole,
    version: string,
    time_ms: number,
    rate_hz: number,
    devices,
    absences,
    replay: optional(replay)
  }),
  devices: record({ time_ms: number, devices, absences }),
  frame: record({
    seq: whole,
    time_ms: number,
    readings: list(reading, 200),
    label: optional(string)
  }),
  gap: record({
    from_ms: number,
    to_ms: number,
    reason: string,
    message: string
  }),
  error: record({ code: string, message: string }),
  cell_report: record({
    id: value => typeof value === 'string' && /^[\w-]{1,128}$/.test(value),
    notebook: optional(string),
    cell_id: optional(string),
    execution_count: optional(whole),
    title: string,
    started_ms: number,
    ended_ms: number,
    status: string,
    profile,
    notes: list(string, 20),
    difference: optional(comparison),
    live: optional(live),
    view: optional(reportView),
    // a server before this field sends none
    file: value => value === undefined || optional(string)(value)
  }),
  verdicts: record({
    time_ms: number,
    window_s: number,
    verdicts: byDevice(verdict)
  }),
  health: record({
    time_ms: number,
    window_s: number,
    conditions: byDevice(list(condition, 20))
  }),
  event: record({
    time_ms: number,
    device: string,
    kind: string,
    code: optional(whole),
    severity: string,
    title: string,
    meaning: string,
    remedy: string
  }),
  holders: record({ time_ms: number, devices: byDevice(holders) }),
  outlook: record({
    time_ms: number,
    window_s: number,
    devices: byDevice(outlook)
  }),
  post_mortem: record({
    time_ms: number,
    kernel_id: string,
    notebook: optional(string),
    cell_id: optional(string),
    device: optional(string),
    asked_bytes: optional(number),
    holders: optional(holders),
    sentence: string
  }),
  receipt,
  alerts: record({ time_ms: number, alerts: list(alert, 1000) }),
  keeping: record({
    state: string,
    from_ms: optional(number),
    size_bytes: number,
    message: string
  })
};

const recordList = record({
  records: list(
    record({
      kind: string,
      id: string,
      started_ms: number,
      ended_ms: optional(number),
      notebook: optional(string),
      kernel_id: optional(string),
      cell_id: optional(string),
      title: string,
      verdict: optional(string),
      status: string,
      sentence: string
    }),
    1000
  ),
  has_more: value => typeof value === 'boolean'
});

export function isRecordList(value: unknown): value is RecordList {
  return recordList(value);
}

export function isCellReport(value: unknown): value is CellReport {
  return MESSAGES.cell_report(value);
}

export function isPostMortem(value: unknown): value is PostMortem {
  return MESSAGES.post_mortem(value);
}

export function isAlert(value: unknown): value is Alert {
  return alert(value);
}

/** Decode one message; null for anything that is not one. */
export function decode(data: unknown): ServerMessage | OtherProtocol | null {
  if (typeof data !== 'string') {
    return null;
  }
  let message: unknown;
  try {
    message = JSON.parse(data);
  } catch {
    return null;
  }
  if (!record({ type: string })(message)) {
    return null;
  }
  const { type, protocol } = message as { type: string; protocol?: unknown };
  if (type === 'hello' && whole(protocol) && protocol !== PROTOCOL_VERSION) {
    return { type: 'other_protocol', protocol: protocol as number };
  }
  const known = Object.hasOwn(MESSAGES, type);
  return known && MESSAGES[type as ServerMessage['type']](message)
    ? (message as ServerMessage)
    : null;
}
