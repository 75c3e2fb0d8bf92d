/** Asks for what a timeline is drawn from at first, and again in another theme. */

import type { BokehLoader } from '../core/bokeh';
import type { TimelineWindow } from '../shapes/protocol';
import { Retry } from '../core/retry';
import { isDark } from '../core/theme';
import type { WindowRequest } from './reach';
import type { TimelineSource } from './source';
import { LONGEST_RETRY_MS, RETRY_MS } from './windows';

/** What a figure is drawn from. */
export interface Parts {
  readonly drawn: TimelineWindow;
  /** Bokeh's description. */
  readonly json: unknown;
}

export interface OpeningView {
  /** What is seen, and around it. */
  reach(): WindowRequest;
  /** What is searched for. */
  text(): string;
  draw(parts: Parts): Promise<void>;
  /** It did not come: say why. What is drawn may stay. */
  lost(why: string): void;
  /** It can't be drawn. */
  failed(why: string): void;
}

export class Opening {
  constructor(
    private readonly bokeh: Pick<BokehLoader, 'connection' | 'item' | 'load'>,
    private readonly source: Pick<TimelineSource, 'path' | 'window'>,
    private readonly view: OpeningView
  ) {
    this.retry = new Retry(
      bokeh.connection,
      () => void this.open(),
      RETRY_MS,
      LONGEST_RETRY_MS
    );
  }

  /** Draw in the theme that holds now. */
  async open(): Promise<void> {
    if (this.isAsking) {
      return;
    }
    this.isAsking = true;
    this.retry.cancel();
    const theme = themeName();
    const parts = await this.fetch(theme);
    if (parts !== null && !this.isDisposed) {
      try {
        await this.view.draw(parts);
      } catch (error) {
        this.view.failed((error as Error).message);
      }
    }
    this.isAsking = false;
    if (parts !== null && !this.isDisposed && themeName() !== theme) {
      // it has changed meanwhile
      await this.open();
    }
  }

  dispose(): void {
    this.isDisposed = true;
    this.retry.dispose();
  }

  /** Returns null where a request failed; it may be made again later. */
  private async fetch(theme: string): Promise<Parts | null> {
    try {
      const [drawn, json] = await Promise.all([
        this.source.window(this.view.reach(), this.view.text()),
        this.bokeh.item(`${this.source.path}/figure?theme=${theme}`),
        this.bokeh.load()
      ]);
      this.retry.succeeded();
      return { drawn, json };
    } catch (error) {
      if (!this.isDisposed) {
        this.view.lost(this.retry.words(error));
      }
      return null;
    }
  }

  private readonly retry: Retry;
  private isAsking = false;
  private isDisposed = false;
}

function themeName(): string {
  return isDark() ? 'dark' : 'light';
}
