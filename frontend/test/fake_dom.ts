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
      ...nodes.map(node =>
        typeof node === 'string' ? new FakeNode('#text', node) : node
      )
    );
  }

  get textContent(): string {
    return this.own + this.children.map(child => child.textContent).join('');
  }

  /** All elements below this one that have a tag. */
  all(tag: string): FakeNode[] {
    return this.children.flatMap(child => [
      ...(child.tag === tag ? [child] : []),
      ...child.all(tag)
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
