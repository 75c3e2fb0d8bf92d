/** When to draw: all charts in one animation frame, none that nobody sees. */

import type { Store } from '../store';

/** The span of time that all charts of one view show, as rows of the store. */
export interface View {
  readonly fromMs: number;
  readonly toMs: number;
  readonly start: number;
  readonly end: number;
  readonly times: number[];
  /** Whether all has to be drawn anew: another window, size, theme. */
  readonly anew: boolean;
}

export interface Drawable {
  /** The element whose visibility decides. */
  readonly node: Element;
  draw(view: View): void;
}

/** About as often as a wide chart moves by a pixel, within bounds. */
const PIXELS = 600;
const FASTEST_MS = 100;
const SLOWEST_MS = 1000;

export class DrawLoop {
  constructor(
    private readonly store: Store,
    private windowMs: number
  ) {
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

  setWindow(ms: number): void {
    this.windowMs = ms;
    this.drawNow();
  }

  setPaused(paused: boolean): void {
    this.paused = paused;
    this.drawNow();
    this.wake();
  }

  /** Draw everything once, also while paused. */
  drawNow(): void {
    this.drawVisible(true);
  }

  private drawVisible(anew: boolean): void {
    if (!this.paused) {
      this.heldMs = this.store.now();
    }
    const toMs = this.heldMs;
    const fromMs = toMs - this.windowMs;
    const [start, end] = this.store.range(fromMs, toMs + 1);
    const times = Array.from(this.store.times(start, end));
    const view = { fromMs, toMs, start, end, times, anew };
    this.visible.forEach(drawable => drawable.draw(view));
  }

  dispose(): void {
    this.clear();
    window.clearTimeout(this.timer);
    cancelAnimationFrame(this.request);
    document.removeEventListener('visibilitychange', this.wake);
  }

  private readonly byNode = new Map<Element, Drawable>();
  private readonly visible = new Set<Drawable>();
  private paused = false;
  private heldMs = 0;
  private timer = 0;
  private request = 0;

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
    if (document.hidden || this.paused || this.visible.size === 0) {
      return;
    }
    const period = Math.min(
      SLOWEST_MS,
      Math.max(FASTEST_MS, this.windowMs / PIXELS)
    );
    this.timer = window.setTimeout(() => {
      this.request = requestAnimationFrame(() => {
        this.drawVisible(false);
        this.wake();
      });
    }, period);
  };
}
