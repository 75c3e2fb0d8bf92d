/** The span of time that is shown: it follows now, until a person holds it still. */

export interface Span {
  readonly fromMs: number;
  readonly toMs: number;
}

/** Less than this is a handful of readings. */
const SHORTEST_MS = 2_000;
/** A server without an archive keeps an hour. */
export const HOUR_MS = 3_600_000;
/** One with an archive keeps summaries of so much, unless its settings say other. */
export const MONTH_MS = 30 * 24 * HOUR_MS;

export class Viewport {
  private held: Span | null = null;
  private readonly listeners = new Set<() => void>();

  constructor(
    private readonly now: () => number,
    private _windowMs: number,
    /** How far back there can be anything. */
    private readonly longestMs: () => number = () => HOUR_MS,
    /** When the oldest reading that is kept was made. */
    private readonly oldestMs: () => number = () => now() - longestMs()
  ) {}

  /** Be told when the span changes other than by time passing. */
  onChange(listener: () => void): void {
    this.listeners.add(listener);
  }

  get following(): boolean {
    return this.held === null;
  }

  /** How long a span is shown while it follows now. */
  get windowMs(): number {
    return this._windowMs;
  }

  span(): Span {
    return this.held ?? this.recent();
  }

  /** As long a span up to now, also while another is held. */
  recent(): Span {
    const toMs = this.now();
    return { fromMs: toMs - this._windowMs, toMs };
  }

  /** Choose how much is shown; what is held keeps its end. */
  setWindow(ms: number): void {
    this._windowMs = ms;
    if (this.held !== null) {
      const { toMs } = this.held;
      this.held = this.bounded({ fromMs: toMs - ms, toMs });
    }
    this.changed();
  }

  hold(): void {
    this.show(this.span());
  }

  follow(): void {
    this.held = null;
    this.changed();
  }

  /** Hold this span, as far as there can be anything in it. */
  show(span: Span): void {
    this.held = this.bounded(span);
    this.changed();
  }

  /** Show `factor` times as much; the time at this share of the span stays. */
  zoom(factor: number, atRatio = 0.5): void {
    const { fromMs, toMs } = this.span();
    const fixedMs = fromMs + (toMs - fromMs) * atRatio;
    const lengthMs = clamp(
      (toMs - fromMs) * factor,
      SHORTEST_MS,
      this.longestMs()
    );
    const start = fixedMs - lengthMs * atRatio;
    this.show({ fromMs: start, toMs: start + lengthMs });
  }

  /** Move by a share of the span; negative is into the past. */
  pan(ratio: number): void {
    const { fromMs, toMs } = this.span();
    const byMs = (toMs - fromMs) * ratio;
    this.show({ fromMs: fromMs + byMs, toMs: toMs + byMs });
  }

  /** Show the oldest that is kept. */
  toStart(): void {
    const { fromMs, toMs } = this.span();
    const oldestMs = this.oldestMs();
    this.show({ fromMs: oldestMs, toMs: oldestMs + toMs - fromMs });
  }

  private bounded({ fromMs, toMs }: Span): Span {
    const now = this.now();
    const longestMs = this.longestMs();
    const lengthMs = clamp(toMs - fromMs, SHORTEST_MS, longestMs);
    const start = clamp(fromMs, now - longestMs, now - lengthMs);
    return { fromMs: start, toMs: start + lengthMs };
  }

  private changed(): void {
    this.listeners.forEach(listener => listener());
  }
}

function clamp(value: number, least: number, most: number): number {
  return Math.min(most, Math.max(least, value));
}
