/** The form of a lab's card, as a server must send it. */

import type { Check } from '../checks';
import { list, number, optional, record, string, whole } from '../checks';
import type { CardStatus, Cell, Part } from '../protocol';

const bool: Check = value => typeof value === 'boolean';
const oneOf =
  (...names: string[]): Check =>
  value =>
    names.includes(value as string);
/** One of several records, which say themselves which. */
const tagged =
  (forms: Record<string, Check>): Check =>
  value => {
    const type = (value as { type?: unknown } | null)?.type;
    if (typeof type !== 'string' || !Object.hasOwn(forms, type)) {
      return false;
    }
    return forms[type]?.(value) ?? false;
  };

const statuses: Record<CardStatus, true> = {
  passed: true,
  failed: true,
  unsupported: true,
  error: true,
  'timed out': true,
  undecided: true
};
const status = oneOf(...Object.keys(statuses));
const location = record({
  line: whole,
  code: string,
  column: optional(whole)
});
const cells: Record<Cell['type'], Check> = {
  text: record({ text: string }),
  status: record({ status }),
  number: record({ value: whole, unit: string }),
  ratio: record({
    value: number,
    style: oneOf('times', 'percent'),
    of: string,
    low: optional(number),
    high: optional(number),
    pairs: optional(whole),
    required: optional(number)
  }),
  bytes: record({ size_bytes: whole, what: string }),
  duration: record({ duration_ns: number }),
  rate: record({ per_second: number, unit: oneOf('B', 'FLOP') }),
  location,
  code: record({ code: string })
};
const cell = tagged(cells);
const bar = record({
  begin_ns: whole,
  end_ns: whole,
  label: string,
  line: optional(whole),
  is_waiting: bool
});
const lane = record({ engine: string, name: string, bars: list(bar, 1000) });
const parts: Record<Part['type'], Check> = {
  paragraph: record({
    text: string,
    tone: oneOf('plain', 'quiet', 'warning')
  }),
  location,
  log: record({ lines: list(string, 1000), more: whole }),
  facts: record({
    facts: list(record({ label: string, cells: list(cell, 20) }), 100)
  }),
  table: record({
    heads: list(string, 20),
    rows: list(list(cell, 20), 1000)
  }),
  timeline: record({ end_ns: whole, lanes: list(lane, 20) })
};

/** A card that can be drawn. */
export const card = record({
  title: string,
  status,
  label: string,
  message: string,
  sections: list(
    record({
      title: string,
      parts: list(tagged(parts), 100),
      fold: oneOf('', 'open', 'closed')
    }),
    50
  )
});
