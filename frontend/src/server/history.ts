/** What the server's history answers: one method for each of its requests. */

import type { Connection } from '../core/connection';
import { readJson } from '../core/reading';
import {
  isChecklistView,
  isComparison,
  isDetail,
  isReceipt,
  isSpanStatistics
} from '../shapes/stream';
import type {
  ChecklistView,
  Comparison,
  Detail,
  Receipt,
  SpanStatistics
} from '../shapes/protocol';
import type { Span } from '../core/viewport';

export type ExportFormat = 'csv' | 'jsonl' | 'chrome';

/** A cell that ran, as far as this page knows it. */
export interface RunOfCell extends Span {
  readonly kernelId: string;
  readonly cellId: string | null;
  readonly title: string;
}

export class History {
  constructor(private readonly connection: Pick<Connection, 'read'>) {}

  /** Each metric of a device in as many equal steps as asked. */
  detail(
    device: string,
    metrics: readonly string[],
    span: Span,
    steps: number
  ): Promise<Detail> {
    return this.read('history/detail', isDetail, {
      device,
      metrics: metrics.join(','),
      ...times(span),
      steps: String(steps)
    });
  }

  /** What a span was like on every device. */
  span(span: Span): Promise<SpanStatistics> {
    return this.read('history/span', isSpanStatistics, times(span));
  }

  /** What a cell cost, from when it ran. */
  receipt(run: RunOfCell): Promise<Receipt> {
    return this.read('receipt', isReceipt, {
      ...times(run),
      kernel_id: run.kernelId,
      ...(run.cellId === null ? {} : { cell_id: run.cellId }),
      title: run.title
    });
  }

  /** What differs between two cell reports, by their ids. */
  difference(before: string, after: string): Promise<Comparison> {
    const route = `reports/${encodeURIComponent(after)}/difference`;
    return this.read(route, isComparison, { before });
  }

  /** What a report, by its id, answers to the optimisation checklist. */
  checklist(report: string): Promise<ChecklistView> {
    const route = `reports/${encodeURIComponent(report)}/checklist`;
    return this.read(route, isChecklistView, {});
  }

  /** The history as a file, of a span or (null) all of it. */
  async export(format: ExportFormat, span: Span | null): Promise<File> {
    const path = `api/v1/history/export?${query({
      format,
      ...(span === null ? {} : times(span))
    })}`;
    return this.file(path, `warpbook-history.${format}`);
  }

  /** A report as one HTML file. */
  async page(report: string): Promise<File> {
    const path = `api/v1/reports/${encodeURIComponent(report)}/page`;
    return this.file(path, 'warpbook-report.html');
  }

  /** What a route gives as a file, named by the server. */
  private async file(path: string, otherwise: string): Promise<File> {
    const answer = await this.connection.read(path);
    const named = /filename="?([^";]+)"?/.exec(
      answer.headers.get('Content-Disposition') ?? ''
    );
    return new File([await answer.blob()], named?.[1] ?? otherwise);
  }

  private read<T>(
    route: string,
    check: (value: unknown) => value is T,
    parameters: Record<string, string>
  ): Promise<T> {
    const path = `api/v1/${route}?${query(parameters)}`;
    return readJson(this.connection, path, check);
  }
}

function times({ fromMs, toMs }: Span) {
  return { from_ms: fromMs.toFixed(0), to_ms: toMs.toFixed(0) };
}

function query(parameters: Record<string, string>): string {
  return new URLSearchParams(parameters).toString();
}
