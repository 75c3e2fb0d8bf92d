// Generated from extension/warpbook/*protocol.py. Do not edit.

import type { Shape } from './checks';
import * as check from './checks';
import type * as types from './protocol';

export const isEventFacts: Shape<types.EventFacts> = check.record<types.EventFacts>({
  grid: check.optional(check.tuple(check.whole, check.whole, check.whole)),
  block: check.optional(check.tuple(check.whole, check.whole, check.whole)),
  registers_per_thread: check.optional(check.whole),
  shared_memory_bytes: check.optional(check.whole),
  occupancy_ratio: check.optional(check.number),
  size_bytes: check.optional(check.whole),
  dims: check.list(check.list(check.whole, 100), 100),
  dtypes: check.list(check.text, 100),
}, {
  grid: null,
  block: null,
  registers_per_thread: null,
  shared_memory_bytes: null,
  occupancy_ratio: null,
  size_bytes: null,
  dims: [],
  dtypes: [],
});

export const isTimelineBars: Shape<types.TimelineBars> = check.record<types.TimelineBars>({
  is_merged: check.flag,
  starts_ns: check.list(check.whole, 100000),
  durations_ns: check.list(check.whole, 100000),
  names: check.list(check.whole, 100000),
  counts: check.list(check.whole, 100000),
  busy_ratios: check.list(check.number, 100000),
  found: check.list(check.whole, 100000),
}, {
  counts: [],
  busy_ratios: [],
  found: [],
});

export const isTimelineEvent: Shape<types.TimelineEvent> = check.record<types.TimelineEvent>({
  row: check.whole,
  name: check.text,
  start_ns: check.whole,
  duration_ns: check.whole,
});

export const isTimelineDetails: Shape<types.TimelineDetails> = check.record<types.TimelineDetails>({
  event: isTimelineEvent,
  label: check.text,
  kind: check.text,
  facts: isEventFacts,
  line: check.optional(check.whole),
  launch: check.optional(isTimelineEvent),
  launched: check.list(isTimelineEvent, 100),
  launched_events: check.whole,
});

export const isTimelineFound: Shape<types.TimelineFound> = check.record<types.TimelineFound>({
  kind: check.text,
  events: check.whole,
  time_ns: check.whole,
});

export const isTimelineMatches: Shape<types.TimelineMatches> = check.record<types.TimelineMatches>({
  text: check.text,
  found: check.list(isTimelineFound, 100),
  previous: check.optional(isTimelineEvent),
  next: check.optional(isTimelineEvent),
});

export const isTimelineName: Shape<types.TimelineName> = check.record<types.TimelineName>({
  name: check.text,
  kind: check.text,
  events: check.whole,
  time_ns: check.whole,
});

export const isTimelineRow: Shape<types.TimelineRow> = check.record<types.TimelineRow>({
  label: check.text,
  kind: check.text,
  level: check.whole,
  events: check.whole,
});

export const isTimelineUse: Shape<types.TimelineUse> = check.record<types.TimelineUse>({
  label: check.text,
  kind: check.text,
  level: check.whole,
  events: check.whole,
  busy_ns: check.whole,
  gaps: check.whole,
  longest_gap_ns: check.whole,
  longest_gap_from_ns: check.optional(check.whole),
});

export const isTimelineStatistics: Shape<types.TimelineStatistics> = check.record<types.TimelineStatistics>({
  from_ns: check.whole,
  to_ns: check.whole,
  gpus: check.list(isTimelineUse, 1000),
  rows: check.list(isTimelineUse, 1000),
  names: check.list(isTimelineName, 1000),
});

export const isTimelineWindow: Shape<types.TimelineWindow> = check.record<types.TimelineWindow>({
  from_ns: check.whole,
  to_ns: check.whole,
  step_ns: check.whole,
  first_ns: check.whole,
  last_ns: check.whole,
  rows: check.list(isTimelineRow, 1000),
  bars: check.list(isTimelineBars, 1000),
  names: check.map(check.text, 100000),
  omitted: check.whole,
});
