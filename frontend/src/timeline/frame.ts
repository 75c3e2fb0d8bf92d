/** The frame that a timeline is drawn in, and where times are in it. */

import type { LinkedRange } from '../core/time_links';
import type { Part } from './reach';

const NS_PER_MS = 1e6;
const LEAST_NS = 20;
/** So many times as long as the run at most: further away nothing is seen. */
const MOST_WHOLES = 8;

/** What is seen on so many pixels. */
export interface Frame {
  readonly seen: Part;
  readonly width: number;
  readonly height: number;
  /** Pixels that the lanes are scrolled by; pinned ones stay. */
  readonly scroll: number;
}

/** The least width of a bar, in pixels. */
const LEAST_WIDTH = 1;
/** What is far out of sight ends here: canvases lose digits. */
const FAR_PIXELS = 10_000;

/**
 * Give the left and right edge of an event, in whole pixels.
 *
 * This is the only place where a bar gets a width in pixels, and it is called when the
 * bar is drawn or pointed at. Times are rounded in their order, so what is nested is
 * never wider than what it is nested in.
 */
export function edges(
  startNs: number,
  lengthNs: number,
  { seen, width }: Pick<Frame, 'seen' | 'width'>
): readonly [number, number] {
  const perNs = width / (seen.toNs - seen.fromNs);
  const x = (ns: number) =>
    Math.min(
      Math.max(Math.round((ns - seen.fromNs) * perNs), -FAR_PIXELS),
      width + FAR_PIXELS
    );
  const left = x(startNs);
  return [left, Math.max(x(startNs + lengthNs), left + LEAST_WIDTH)];
}

/** The part that is seen; figures over the same time move along. */
export class SeenRange implements LinkedRange {
  readonly properties = {};

  /**
   * @param name - other ranges of this name show the same part
   * @param part - at first
   */
  constructor(
    readonly name: string,
    private seen: Part
  ) {
    this.mostNs = MOST_WHOLES * (seen.toNs - seen.fromNs);
  }

  get part(): Part {
    return this.seen;
  }

  get start(): number {
    return this.seen.fromNs / NS_PER_MS;
  }

  get end(): number {
    return this.seen.toNs / NS_PER_MS;
  }

  setv({ start, end }: { readonly start: number; readonly end: number }): void {
    this.show({ fromNs: start * NS_PER_MS, toNs: end * NS_PER_MS });
  }

  on_change(_: readonly unknown[], listener: () => void): void {
    this.listeners.push(listener);
  }

  show({ fromNs, toNs }: Part): void {
    const missing = Math.max(LEAST_NS - (toNs - fromNs), 0) / 2;
    this.seen = { fromNs: fromNs - missing, toNs: toNs + missing };
    this.listeners.forEach(listener => listener());
  }

  /**
   * Show `factor` times as much.
   * @param factor - above 1 is further away
   * @param share - of the width; what is there stays there
   */
  zoom(factor: number, share: number): void {
    const { fromNs, toNs } = this.seen;
    const atNs = fromNs + share * (toNs - fromNs);
    const lengthNs = toNs - fromNs;
    const least = LEAST_NS / lengthNs;
    const most = Math.max(this.mostNs / lengthNs, 1);
    const by = Math.min(Math.max(factor, least), most);
    this.show({
      fromNs: atNs - (atNs - fromNs) * by,
      toNs: atNs + (toNs - atNs) * by
    });
  }

  /** Move by a share of what is seen. */
  pan(share: number): void {
    const { fromNs, toNs } = this.seen;
    const by = (toNs - fromNs) * share;
    this.show({ fromNs: fromNs + by, toNs: toNs + by });
  }

  private readonly mostNs: number;
  private readonly listeners: (() => void)[] = [];
}
