/** As much of a document as drawing needs: elements, attributes and text nodes. */

export class FakeNode {
  readonly children: FakeNode[] = [];
  readonly attributes = new Map<string, string>();
  readonly style: Record<string, string> = {};

  constructor(
    readonly tag: string,
    private readonly own = ''
  ) {}

  setAttribute(name: string, value: string): void {
    this.attributes.set(name, value);
  }

  addEventListener(): void {
    // nothing happens to these nodes
  }

  append(...nodes: (FakeNode | string)[]): void {
    this.children.push(
      ...nodes.map(each =>
        typeof each === 'string' ? new FakeNode('#text', each) : each
      )
    );
  }

  get textContent(): string {
    return this.own + this.children.map(each => each.textContent).join('');
  }

  /** All elements below this one that have a tag. */
  all(tag: string): FakeNode[] {
    return this.children.flatMap(each => [
      ...(each.tag === tag ? [each] : []),
      ...each.all(tag)
    ]);
  }
}

/** Let what is drawn be made of such nodes. */
export function fakeDocument(): void {
  Object.assign(globalThis, {
    document: {
      createElement: (tag: string) => new FakeNode(tag),
      createElementNS: (_: string, tag: string) => new FakeNode(tag),
      createTextNode: (text: string) => new FakeNode('#text', text)
    }
  });
}
