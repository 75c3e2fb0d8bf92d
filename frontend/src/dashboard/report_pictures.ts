/** The pictures of a report: telemetry beside the timeline, roofline, memory. */

import { h } from '../dom';
import { NONE } from '../format';
import type { CellProfile, CellReport, RooflinePoint } from '../protocol';
import type { Drawing } from './picture';
import type { Cell } from './sortable';
import { name, number, ratio, sortableTable, time, words } from './sortable';

/** As the server has them in `DTYPE_LABELS`. */
const DTYPES: Readonly<Record<string, string>> = {
  double: 'FP64',
  float: 'FP32',
  tf32: 'TF32',
  'c10::Half': 'FP16',
  'c10::BFloat16': 'BF16',
  'c10::Float8_e4m3fn': 'FP8',
  'c10::Float8_e5m2': 'FP8',
  'signed char': 'INT8'
};

/** What the GPUs' own counters said meanwhile; null without a GPU, or of a file. */
export function telemetryPart(report: CellReport): Drawing | null {
  const { file, profile } = report;
  return profile.gpu_name === null || typeof file === 'string'
    ? null
    : drawing(report, 'telemetry');
}

/** Memory over time if it was recorded, and the roofline below its fold. */
export function pictureParts(report: CellReport): (Drawing | Node)[] {
  const { profile } = report;
  if (profile.gpu_name === null) {
    return [];
  }
  const memory =
    profile.memory_curves.length === 0 ? [] : [drawing(report, 'memory')];
  const table = profile.roofline.length === 0 ? [] : [rooflineTable(profile)];
  return [...memory, drawing(report, 'roofline', 'Roofline'), ...table];
}

function drawing(
  { id }: CellReport,
  kind: string,
  folded: string | null = null
): Drawing {
  return {
    path: `api/v1/reports/${encodeURIComponent(id)}/figure?kind=${kind}`,
    folded
  };
}

function rooflineTable({ roofline }: CellProfile): HTMLElement {
  const table = sortableTable({
    caption: 'Operators under the roofline',
    heads: [
      'Operator',
      'Type',
      'Calls',
      'Time',
      'Rate',
      'At least',
      'Of datasheet',
      'Of measured'
    ],
    rows: roofline.map(point => [
      name(`${point.name} ${point.operands}`.trim()),
      words(DTYPES[point.dtype ?? ''] ?? NONE),
      number(point.calls),
      time(point.time_ms),
      rate(point, point.flops, 'FLOP'),
      rate(point, point.size_bytes, 'B'),
      ratio(point.of_datasheet),
      ratio(point.of_measured)
    ])
  });
  return h('div', { class: 'wb-tables' }, table);
}

function rate(point: RooflinePoint, of: number | null, unit: string): Cell {
  if (of === null || point.time_ms <= 0) {
    return { text: NONE, value: null };
  }
  const value = (of / point.time_ms) * 1e3;
  const [size, prefix] = value >= 1e12 ? [1e12, 'T'] : [1e9, 'G'];
  return { text: `${(value / size).toPrecision(3)} ${prefix}${unit}/s`, value };
}
