/** A list that keeps its rows, and with them focus and selection, when data changes. */

export interface Row<T> {
  readonly node: HTMLElement;
  update(item: T): void;
}

export class KeyedList<T> {
  constructor(
    readonly node: HTMLElement,
    private readonly key: (item: T) => string,
    private readonly make: (item: T) => Row<T>
  ) {}

  /** Show these, in this order; a row whose key stays is updated in place. */
  show(items: readonly T[]): void {
    const wanted = new Map(items.map(item => [this.key(item), item]));
    for (const [key, row] of this.rows) {
      if (!wanted.has(key)) {
        row.node.remove();
        this.rows.delete(key);
      }
    }
    let place = this.node.firstElementChild;
    for (const [key, item] of wanted) {
      let row = this.rows.get(key);
      if (row === undefined) {
        row = this.make(item);
        this.rows.set(key, row);
      }
      row.update(item);
      // moving a node takes its focus away, so only those out of place are moved
      if (row.node === place) {
        place = place.nextElementSibling;
      } else {
        this.node.insertBefore(row.node, place);
      }
    }
  }

  private readonly rows = new Map<string, Row<T>>();
}
