/** Bokeh figures over the same time that move and zoom together. */

/** The little of BokehJS's ranges that is used here. */
export interface LinkedRange {
  readonly name: string | null;
  readonly start: number;
  readonly end: number;
  readonly properties: Readonly<Record<string, unknown>>;
  setv(values: { readonly start: number; readonly end: number }): void;
  on_change(properties: readonly unknown[], listener: () => void): void;
}

interface Layout {
  readonly x_range?: LinkedRange;
  readonly children?: readonly Layout[];
}

/** What is drawn. */
interface Figure {
  readonly roots: readonly { readonly model: unknown }[];
}

/** The server gives such a name, and the same one, to ranges that belong together. */
const PREFIX = 'cell ';

export class LinkedRanges {
  /** Let a figure move with those whose ranges have the same name. */
  join(figure: Figure): void {
    const ranges = new Set(
      figure.roots.flatMap(({ model }) => rangesOf(model as Layout))
    );
    this.joined.set(figure, ranges);
    for (const range of ranges) {
      const { start, end } = range.properties;
      range.on_change([start, end], () => this.follow(range));
    }
    // what comes later, or is drawn again in another theme, shows the same part
    const [range] = ranges;
    const other = range && this.others(range).find(peer => !ranges.has(peer));
    if (range !== undefined && other !== undefined) {
      range.setv({ start: other.start, end: other.end });
    }
  }

  leave(figure: Figure): void {
    this.joined.delete(figure);
  }

  private follow(moved: LinkedRange): void {
    if (this.isFollowing) {
      return;
    }
    this.isFollowing = true;
    const { start, end } = moved;
    this.others(moved).forEach(other => other.setv({ start, end }));
    this.isFollowing = false;
  }

  private others(range: LinkedRange): LinkedRange[] {
    return [...this.joined.values()]
      .flatMap(ranges => [...ranges])
      .filter(other => other !== range && other.name === range.name);
  }

  private readonly joined = new Map<Figure, ReadonlySet<LinkedRange>>();
  private isFollowing = false;
}

function rangesOf({ x_range: range, children = [] }: Layout): LinkedRange[] {
  const own = range?.name?.startsWith(PREFIX) === true ? [range] : [];
  return [...own, ...children.flatMap(rangesOf)];
}
