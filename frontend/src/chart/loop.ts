/** When to draw: all charts in one animation frame, none that nobody sees. */

import type { Store } from '../core/store';
import type { Details } from './details';
import type { Samples } from './samples';
import { storedSamples } from './samples';
import type { Span, Viewport } from '../core/viewport';

/** What all charts of one view show now. */
export interface View extends Span {
  /** Whether it moves with time; if not, a person holds it. */
  readonly following: boolean;
  /** Whether all has to be drawn anew: another span, size, theme. */
  readonly anew: boolean;
  samples(device: string, metrics: readonly string[]): Samples;
}

export interface Drawable {
  /** The element whose visibility decides. */
  readonly node: Element;
  /** It tells of now, also while a person holds the charts still. */
  readonly isOfNow?: boolean;
  /** Draw on canvases. */
  draw?(view: View): void;
  /** Write texts. Between canvases they would lay the page out for each. */
  write?(view: View): void;
}

/** About as often as a wide chart moves by a pixel, within bounds. */
const PIXELS = 600;
const FASTEST_MS = 100;
const SLOWEST_MS = 1000;
/** Drawing takes this part of a page's time at most, however many charts there are. */
const DRAWING_SHARE = 1 / 8;
/** As much as the store holds at full resolution. */
export const STORED_MS = 600_000;

export class DrawLoop {
  constructor(
    private readonly store: Store,
    private readonly viewport: Viewport,
    private readonly details: Details | null = null
  ) {
    viewport.onChange(() => {
      this.drawNow();
      this.wake();
    });
    document.addEventListener('visibilitychange', this.wake);
  }

  add(drawable: Drawable): void {
    this.byNode.set(drawable.node, drawable);
    this.observer.observe(drawable.node);
  }

  /** Forget all drawables. */
  clear(): void {
    this.observer.disconnect();
    this.byNode.clear();
    this.visible.clear();
  }

  /** Draw everything in the next animation frame, also what is held. */
  drawNow(): void {
    if (this.soon === 0 && !this.disposed) {
      this.soon = requestAnimationFrame(() => {
        this.soon = 0;
        this.drawVisible(true);
      });
    }
  }

  dispose(): void {
    this.disposed = true;
    this.clear();
    window.clearTimeout(this.timer);
    cancelAnimationFrame(this.request);
    cancelAnimationFrame(this.soon);
    document.removeEventListener('visibilitychange', this.wake);
  }

  private drawVisible(anew: boolean): void {
    const { following } = this.viewport;
    const view = this.view(anew);
    const changed = [...this.visible].filter(
      ({ isOfNow }) => anew || following || isOfNow
    );
    changed.forEach(drawable => drawable.draw?.(view));
    changed.forEach(drawable => drawable.write?.(view));
  }

  private view(anew: boolean): View {
    const { following } = this.viewport;
    const span = this.viewport.span();
    const stored = storedSamples(this.store, span);
    const { details } = this;
    if (details === null || !this.isBeyondStore(span)) {
      details?.clear();
      return { ...span, following, anew, samples: stored };
    }
    return {
      ...span,
      following,
      anew,
      samples: (device, metrics) =>
        details.samples(device, metrics, span, following) ?? stored(device)
    };
  }

  /** Whether the store does not hold all of a span that the server may have. */
  private isBeyondStore({ fromMs, toMs }: Span): boolean {
    return this.viewport.following
      ? toMs - fromMs > STORED_MS
      : fromMs < this.store.firstMs();
  }

  private readonly byNode = new Map<Element, Drawable>();
  private readonly visible = new Set<Drawable>();
  private timer = 0;
  private request = 0;
  private soon = 0;
  /** How long drawing took last. */
  private drawingMs = 0;
  private disposed = false;

  private readonly observer = new IntersectionObserver(entries => {
    for (const { target, isIntersecting } of entries) {
      const drawable = this.byNode.get(target);
      if (drawable !== undefined && isIntersecting) {
        this.visible.add(drawable);
      } else if (drawable !== undefined) {
        this.visible.delete(drawable);
      }
    }
    this.drawNow();
    this.wake();
  });

  private readonly wake = (): void => {
    window.clearTimeout(this.timer);
    cancelAnimationFrame(this.request);
    if (document.hidden || this.visible.size === 0 || this.disposed) {
      return;
    }
    const { following, windowMs } = this.viewport;
    const calm = Math.max(
      FASTEST_MS,
      windowMs / PIXELS,
      this.drawingMs / DRAWING_SHARE
    );
    const period = following ? Math.min(SLOWEST_MS, calm) : SLOWEST_MS;
    this.timer = window.setTimeout(() => {
      this.request = requestAnimationFrame(() => {
        const began = performance.now();
        this.drawVisible(false);
        this.drawingMs = performance.now() - began;
        this.wake();
      });
    }, period);
  };
}
