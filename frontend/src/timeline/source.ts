/** What the server answers about one report's timeline. */

import type { Connection } from '../core/connection';
import { readJson } from '../core/reading';
import {
  isTimelineDetails,
  isTimelineMatches,
  isTimelineStatistics,
  isTimelineWindow
} from '../shapes/timeline';
import type {
  TimelineDetails,
  TimelineMatches,
  TimelineStatistics,
  TimelineWindow
} from '../shapes/protocol';
import type { Part, WindowRequest } from './reach';

export class TimelineSource {
  readonly path: string;

  constructor(
    private readonly connection: Pick<Connection, 'read'>,
    reportId: string
  ) {
    this.path = `api/v1/reports/${encodeURIComponent(reportId)}/timeline`;
  }

  /** A part in bars; those that hold the text are marked. */
  window(
    { fromNs, toNs, steps }: WindowRequest,
    text: string
  ): Promise<TimelineWindow> {
    return this.read('', isTimelineWindow, {
      ...part({ fromNs, toNs }),
      steps: String(Math.min(steps, MOST_STEPS)),
      text
    });
  }

  /** A selection in figures. */
  statistics(selection: Part): Promise<TimelineStatistics> {
    return this.read('/statistics', isTimelineStatistics, part(selection));
  }

  /** What has a text in its name, and the matches next to an event. */
  search(text: string, atNs: number, atRow: number): Promise<TimelineMatches> {
    return this.read('/search', isTimelineMatches, {
      text,
      at_ns: whole(atNs),
      at_row: String(atRow)
    });
  }

  /** All that is known about the event of a row that starts then. */
  details(row: number, startNs: number): Promise<TimelineDetails> {
    return this.read('/event', isTimelineDetails, {
      row: String(row),
      start_ns: whole(startNs)
    });
  }

  /** All events as a Chrome trace. */
  async export(): Promise<File> {
    const answer = await this.connection.read(`${this.path}/export`);
    return new File([await answer.blob()], 'warpbook.trace.json');
  }

  private read<T>(
    route: string,
    check: (value: unknown) => value is T,
    parameters: Record<string, string>
  ): Promise<T> {
    const query = new URLSearchParams(parameters).toString();
    return readJson(this.connection, `${this.path}${route}?${query}`, check);
  }
}

/** As many as the server gives. */
const MOST_STEPS = 12_000;
const FURTHEST_NS = 2 ** 53 - 1;

function part({ fromNs, toNs }: Part) {
  return {
    from_ns: whole(Math.floor(fromNs)),
    to_ns: whole(Math.ceil(toNs))
  };
}

function whole(ns: number): string {
  const bounded = Math.min(Math.max(Math.round(ns), -FURTHEST_NS), FURTHEST_NS);
  return bounded.toFixed(0);
}
