/** The shape of what the server answers about a timeline. */

import { facts, list, number, optional, record, string, whole } from './checks';
import type {
  TimelineDetails,
  TimelineMatches,
  TimelineStatistics,
  TimelineWindow
} from './protocol';

const timelineBars = record({
  is_merged: value => typeof value === 'boolean',
  starts_ns: list(number),
  durations_ns: list(number),
  names: list(whole),
  counts: list(number),
  busy_ratios: list(number),
  found: list(whole)
});
const timelineRow = record({
  label: string,
  kind: string,
  level: whole,
  events: number
});
const timelineUse = record({
  label: string,
  kind: string,
  level: whole,
  events: number,
  busy_ns: number,
  gaps: number,
  longest_gap_ns: number,
  longest_gap_from_ns: optional(number)
});
const timelineEvent = record({
  row: whole,
  name: string,
  start_ns: number,
  duration_ns: number
});
const timelineWindow = record({
  from_ns: number,
  to_ns: number,
  step_ns: number,
  first_ns: number,
  last_ns: number,
  rows: list(timelineRow, 1000),
  bars: list(timelineBars, 1000),
  names: facts,
  omitted: number
});
const timelineStatistics = record({
  from_ns: number,
  to_ns: number,
  gpus: list(timelineUse, 1000),
  rows: list(timelineUse, 1000),
  names: list(
    record({ name: string, kind: string, events: number, time_ns: number }),
    1000
  )
});
const timelineMatches = record({
  text: string,
  found: list(record({ kind: string, events: number, time_ns: number }), 100),
  previous: optional(timelineEvent),
  next: optional(timelineEvent)
});

const timelineDetails = record({
  event: timelineEvent,
  label: string,
  kind: string,
  facts: record({
    grid: optional(list(number, 3)),
    block: optional(list(number, 3)),
    registers_per_thread: optional(number),
    shared_memory_bytes: optional(number),
    occupancy_ratio: optional(number),
    size_bytes: optional(number),
    dims: list(list(number, 100), 100),
    dtypes: list(string, 100)
  }),
  line: optional(number),
  launch: optional(timelineEvent),
  launched: list(timelineEvent, 100),
  launched_events: number
});

export function isTimelineWindow(value: unknown): value is TimelineWindow {
  return timelineWindow(value);
}

export function isTimelineStatistics(
  value: unknown
): value is TimelineStatistics {
  return timelineStatistics(value);
}

export function isTimelineMatches(value: unknown): value is TimelineMatches {
  return timelineMatches(value);
}

export function isTimelineDetails(value: unknown): value is TimelineDetails {
  return timelineDetails(value);
}
