/** The pictures of a report: telemetry beside the timeline, roofline, memory. */

import type { CellReport } from '../../shapes/protocol';
import type { Drawing } from '../parts/picture';

/** What the GPUs' own counters said meanwhile; null without a GPU, or of a file. */
export function telemetryPart(report: CellReport): Drawing | null {
  const { file, profile } = report;
  return profile.gpu_name === null || typeof file === 'string'
    ? null
    : drawing(report, 'telemetry');
}

/** Memory over time; null if it was not recorded. */
export function memoryPart(report: CellReport): Drawing | null {
  const { profile } = report;
  return profile.gpu_name === null || profile.memory_curves.length === 0
    ? null
    : drawing(report, 'memory');
}

/**
 * The roofline; null without a GPU.
 * @param folded - the words that it is folded below; null is open
 */
export function rooflinePart(
  report: CellReport,
  folded: string | null = null
): Drawing | null {
  return report.profile.gpu_name === null
    ? null
    : drawing(report, 'roofline', folded);
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
