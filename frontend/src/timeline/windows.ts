/** Asks for what is seen of a timeline and not at hand, one request at a time. */

import type { Connection } from '../core/connection';
import type { TimelineWindow } from '../shapes/protocol';
import { Retry } from '../core/retry';
import type { AtHand, Part } from './reach';
import { wanted } from './reach';
import type { TimelineSource } from './source';

/** Between two requests while a person moves. */
const PAUSE_MS = 60;
/** A request that failed is made again after so long, and at least so often. */
export const RETRY_MS = 2_000;
export const LONGEST_RETRY_MS = 64_000;

/** What is drawn on: a part of the run, on so many pixels. */
export interface Screen {
  readonly seen: Part;
  readonly pixels: number;
}

export interface WindowsView {
  /** Another one is drawn anew; null where nothing is drawn. */
  screen(): Screen | null;
  /** What is searched for; bars that match it are marked. */
  text(): string;
  /** Draw what has come. */
  fill(drawn: TimelineWindow): void;
  /** Say why nothing comes. */
  tell(problem: string): void;
}

export class Windows {
  constructor(
    private readonly source: Pick<TimelineSource, 'window'>,
    connection: Pick<Connection, 'listen'>,
    private readonly view: WindowsView
  ) {
    this.retry = new Retry(
      connection,
      () => void this.fetch(),
      RETRY_MS,
      LONGEST_RETRY_MS
    );
  }

  /** A person may see another part. */
  moved(): void {
    this.timer ||= window.setTimeout(() => {
      this.timer = 0;
      void this.fetch();
    }, PAUSE_MS);
  }

  /** Ask for all that is seen: its bars are to be marked anew. */
  refill(): void {
    this.atHand = null;
    void this.fetch();
  }

  /** Draw an answer, which is at hand from now on. */
  take(drawn: TimelineWindow): void {
    const isMerged = drawn.bars.some(row => row.is_merged);
    this.atHand = {
      fromNs: drawn.from_ns <= drawn.first_ns ? -Infinity : drawn.from_ns,
      toNs: drawn.to_ns >= drawn.last_ns ? Infinity : drawn.to_ns,
      stepNs: isMerged ? drawn.step_ns : 0
    };
    this.view.fill(drawn);
  }

  dispose(): void {
    window.clearTimeout(this.timer);
    this.retry.dispose();
  }

  private async fetch(): Promise<void> {
    const screen = this.view.screen();
    if (screen === null || this.isAsking) {
      return;
    }
    this.retry.cancel();
    const reach = wanted(screen.seen, screen.pixels, this.atHand);
    if (reach === null) {
      return;
    }
    this.isAsking = true;
    const text = this.view.text();
    try {
      const answer = await this.source.window(reach, text);
      this.retry.succeeded();
      if (this.view.screen() === screen && this.view.text() === text) {
        this.take(answer);
      }
    } catch (error) {
      const why = this.retry.words(error);
      if (this.view.screen() === screen) {
        this.view.tell(why);
      }
      return;
    } finally {
      this.isAsking = false;
    }
    if (this.view.screen() !== null) {
      // a person has moved on, or searched, meanwhile
      this.moved();
    }
  }

  private readonly retry: Retry;
  private atHand: AtHand | null = null;
  private isAsking = false;
  private timer = 0;
}
