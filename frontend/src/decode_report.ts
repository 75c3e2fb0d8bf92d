/** The shape of a cell's profile, and of the comparison of two. */

import { list, number, optional, record, string, whole } from './checks';

const cell = record({
  text: string,
  value: value => value === null || string(value) || number(value),
  bar: number
});
const table = record({
  title: string,
  name: string,
  header: list(string, 100),
  rows: list(list(cell, 100), 10_000),
  is_code: value => typeof value === 'boolean'
});
const tables = list(table, 100);
const figures = list(record({ label: string, value: string }), 1000);
export const comparison = record({
  sentence: string,
  notes: list(string, 20),
  cautions: list(string, 20),
  tables
});
const verdict = record({ kind: string, sentence: string });
/** A report as it is shown. */
export const reportView = record({
  headline: optional(record({ kind: string, cause: string, change: string })),
  time: optional(
    record({
      title: string,
      parts: list(
        record({ kind: optional(string), label: string, ratio: number }),
        100
      )
    })
  ),
  figures,
  warnings: list(string, 1000),
  changes: list(
    record({
      name: string,
      heading: string,
      sentence: string,
      evidence: string,
      sketch: string,
      lab: optional(string)
    }),
    100
  ),
  trials: list(
    record({ name: string, outcome: string, sentence: string }),
    100
  ),
  lines: optional(table),
  causes: list(
    record({
      kind: string,
      share: string,
      share_ratio: number,
      evidence: string,
      advice: string,
      lab: optional(string)
    }),
    1000
  ),
  sections: list(record({ title: string, tables }), 100),
  groups: list(record({ title: string, figures }), 100)
});
/** What is drawn of a profile beside its view. */
export const profile = record({
  verdict: optional(verdict),
  wall_ms: number,
  gpu_name: optional(string),
  gpu_busy_ms: optional(number),
  memory_curves: list(record({ device: whole }), 200)
});
