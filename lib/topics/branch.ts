import { TextMap } from './text-map.ts';

/**
 * One node of a tree of topic levels: children by the text of their level. The first child is kept inline, because most nodes have no
 * other and a Map of one entry takes 200 bytes.
 */
export class Branch<Child> {
  /** Level text of the inline child; undefined when there is none. */
  firstLabel: string | undefined = undefined;
  first: Child | undefined = undefined;
  /** The other children; undefined when there is none. */
  others: TextMap<Child> | undefined = undefined;

  child(label: string): Child | undefined {
    if (this.firstLabel === label) return this.first;
    return this.others === undefined ? undefined : this.others.get(label);
  }

  /** Set the child of this label, new or not. `source` is the topic or filter that the label was cut out of. */
  link(label: string, child: Child, source: string): void {
    if (this.firstLabel === label) {
      this.first = child;
    } else if (this.others?.has(label)) {
      this.others.set(label, child);
    } else if (this.firstLabel === undefined) {
      this.firstLabel = detach(label, source);
      this.first = child;
    } else {
      this.others ??= new TextMap();
      this.others.set(detach(label, source), child);
    }
  }

  /** Forget the child of this label. */
  unlink(label: string): void {
    if (this.firstLabel === label) {
      this.firstLabel = undefined;
      this.first = undefined;
    } else if (this.others?.delete(label) && this.others.size === 0) {
      this.others = undefined;
    }
  }

  get childCount(): number {
    return (this.firstLabel === undefined ? 0 : 1) + (this.others === undefined ? 0 : this.others.size);
  }
}

/**
 * A text of 13 characters or more that is cut out of another one keeps all of that other one in memory, and a node may outlive the
 * topic that made it.
 */
function detach(label: string, source: string): string {
  return label.length >= 13 && source.length - label.length > 256 ? Buffer.from(label).toString() : label;
}
