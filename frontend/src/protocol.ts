// Generated from extension/warpbook/protocol.py. Do not edit.

export const PROTOCOL_VERSION = 1;

/** Why the server closed a stream, in the range that RFC 6455 leaves free. */
export const CloseCode = {
  PROTOCOL_VERSION: 4001,
  GARBAGE: 4002,
  TOO_MANY_VIEWERS: 4003
} as const;

export type State =
  'lost' | 'no_permission' | 'not_supported' | 'ok' | 'stale' | 'unavailable';

export type AbsenceReason =
  | 'driver_not_loaded'
  | 'lost'
  | 'no_device'
  | 'no_library'
  | 'no_permission'
  | 'not_installed'
  | 'not_supported'
  | 'unknown'
  | 'version_mismatch';

export type Unit =
  | 'bytes'
  | 'bytes_per_s'
  | 'celsius'
  | 'count'
  | 'flags'
  | 'joules'
  | 'mhz'
  | 'ms'
  | 'ratio'
  | 'watts';

export type DeviceKind = 'gpu' | 'host' | 'monitor';

/** Something a person may expect here and that is not there, and why. */
export interface Absence {
  readonly what: string;
  readonly reason: AbsenceReason;
  readonly message: string;
  readonly remedy: string;
}

/** Answer of `GET <base_url>/warpbook/api/v1/capabilities`. */
export interface Capabilities {
  readonly protocol: number;
  readonly version: string;
  readonly min_rate_hz: number;
  readonly max_rate_hz: number;
  readonly history_seconds: number;
  readonly devices: Device[];
  readonly absences: Absence[];
  readonly replay: Replay | null;
  readonly bokeh: string | null;
}

/** One run of one cell under the profiler. */
export interface CellProfile {
  readonly wall_ms: number;
  readonly profiler_ms: number;
  readonly first_start_ms: number | null;
  readonly gpu_name: string | null;
  readonly gpu_busy_ms: number | null;
  readonly kernel_calls: number | null;
  readonly kernel_time_ms: number | null;
  readonly copy_time_ms: number | null;
  readonly launches: number | null;
  readonly launch_api_ms: number | null;
  readonly synchronizations: number | null;
  readonly synchronization_ms: number | null;
  readonly peak_allocated_bytes: number | null;
  readonly peak_reserved_bytes: number | null;
  readonly kernels: KernelRow[];
  readonly copies: CopyRow[];
  readonly operators: OperatorRow[];
  readonly names: string[];
  readonly lanes: Lane[];
  readonly completeness: Completeness;
}

/** The profile of one cell, from the kernel that ran it to every open view. */
export interface CellReport {
  readonly type: 'cell_report';
  readonly id: string;
  readonly protocol: number;
  readonly kernel_id: string;
  readonly notebook: string | null;
  readonly cell_id: string | null;
  readonly execution_count: number | null;
  readonly title: string;
  readonly started_ms: number;
  readonly ended_ms: number;
  readonly status: 'error' | 'interrupted' | 'ok';
  readonly profile: CellProfile;
}

/** How much of what the cell did is in the trace. */
export interface Completeness {
  readonly launches: number;
  readonly matched: number;
  readonly lanes_omitted: number;
  readonly warnings: string[];
}

/** Something about a GPU that held for a part of the last minute. */
export interface Condition {
  readonly name: string;
  readonly severity: 'fault' | 'normal' | 'warning';
  readonly share_ratio: number;
  readonly sentence: string;
}

/** All copies of one kind, such as "HtoD (Pinned -> Device)"; memsets too. */
export interface CopyRow {
  readonly kind: string;
  readonly calls: number;
  readonly size_bytes: number | null;
  readonly time_ms: number;
}

/** Something that is read: a GPU, the host, or warpbook's own monitor. */
export interface Device {
  readonly id: string;
  readonly kind: DeviceKind;
  readonly name: string;
  readonly index: number | null;
  readonly origin: 'live' | 'replay';
  readonly metrics: Metric[];
  readonly facts: Record<string, string | number>;
}

/** The descriptions changed (a GPU came back, a permission went away). */
export interface Devices {
  readonly type: 'devices';
  readonly time_ms: number;
  readonly devices: Device[];
}

/** The last client message was refused; the stream goes on. */
export interface Error {
  readonly type: 'error';
  readonly code: 'devices' | 'garbage' | 'protocol_version' | 'rate' | 'since';
  readonly message: string;
}

/** All devices at one tick of the sampler's clock. */
export interface Frame {
  readonly type: 'frame';
  readonly seq: number;
  readonly time_ms: number;
  readonly readings: Reading[];
  readonly label: string | null;
}

/** Frames that will never come: nobody watched, or the reader was too slow. */
export interface Gap {
  readonly type: 'gap';
  readonly from_ms: number;
  readonly to_ms: number;
  readonly reason: 'expired' | 'not_watched' | 'restarted' | 'slow_reader';
  readonly message: string;
}

/** What slowed each GPU over the last minute; comes once a second. */
export interface Health {
  readonly type: 'health';
  readonly time_ms: number;
  readonly window_s: number;
  readonly conditions: Record<string, Condition[]>;
}

/** The first message of a stream and the first line of a recording. */
export interface Hello {
  readonly type: 'hello';
  readonly protocol: number;
  readonly version: string;
  readonly time_ms: number;
  readonly rate_hz: number;
  readonly devices: Device[];
  readonly absences: Absence[];
  readonly replay: Replay | null;
}

/** All calls of one GPU kernel. */
export interface KernelRow {
  readonly name: string;
  readonly calls: number;
  readonly time_ms: number;
  readonly share_ratio: number;
}

/** One row of the timeline: a stream of a GPU, or what a host thread called. */
export interface Lane {
  readonly label: string;
  readonly starts_ms: number[];
  readonly durations_ms: number[];
  readonly names: number[];
}

/** One column of a device's readings. */
export interface Metric {
  readonly name: string;
  readonly unit: Unit;
  readonly label: string;
  readonly state: State;
  readonly why: string;
}

/** All calls of one operator on the host (torch's `aten::` names). */
export interface OperatorRow {
  readonly name: string;
  readonly calls: number;
  readonly self_ms: number;
}

/** One device at one tick. */
export interface Reading {
  readonly device: number;
  readonly state: State;
  readonly values: (number | null)[];
  readonly why: string;
}

/** Which recording is being played, so that every view can say so. */
export interface Replay {
  readonly name: string;
  readonly recorded_ms: number;
  readonly duration_ms: number;
  readonly description: string;
}

/** Answer of `GET .../api/v1/state` and of the ingest: the newest frame. */
export interface StateNow {
  readonly protocol: number;
  readonly version: string;
  readonly devices: Device[];
  readonly absences: Absence[];
  readonly replay: Replay | null;
  readonly frame: Frame | null;
  readonly verdicts: Record<string, Verdict>;
}

/** Ask for frames; a later one replaces an earlier one. */
export interface Subscribe {
  readonly type: 'subscribe';
  readonly protocol: number;
  readonly rate_hz?: number;
  readonly devices?: string[] | null;
  readonly since_ms?: number | null;
}

/** Stop the frames and keep the connection (a hidden page). */
export interface Unsubscribe {
  readonly type: 'unsubscribe';
}

/** One window of one GPU, judged. */
export interface Verdict {
  readonly kind:
    | 'communication_bound'
    | 'copy_bound'
    | 'cuda_core_bound'
    | 'host_wait'
    | 'idle'
    | 'memory_bound'
    | 'tensor_bound'
    | 'unknown';
  readonly sentence: string;
  readonly rule: string;
}

/** What held each GPU back over the last seconds; comes once a second. */
export interface Verdicts {
  readonly type: 'verdicts';
  readonly time_ms: number;
  readonly window_s: number;
  readonly verdicts: Record<string, Verdict>;
}

export type ServerMessage =
  Hello | Devices | Frame | Gap | Error | CellReport | Verdicts | Health;

export type ClientMessage = Subscribe | Unsubscribe;
