import { TextMap } from '../base/collections/text-map.ts';

/**
 * A node in a tree of topic levels. Its children are found by the name of their level.
 *
 * The first child is stored inline, because most nodes have only one and a Map with one entry takes 200 bytes.
 */
export class Branch<Child> {
  /** The level of the inline child; undefined if there is none. */
  firstLabel: string | undefined = undefined;
  first: Child | undefined = undefined;
  /** The other children; undefined if there are none. */
  others: TextMap<Child> | undefined = undefined;

  child(label: string): Child | undefined {
    if (this.firstLabel === label) return this.first;
    return this.others === undefined ? undefined : this.others.get(label);
  }

  /** Add or replace a child. `source` is the topic or filter of which `label` is a substring. */
  setChild(label: string, child: Child, source: string): void {
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

  /** Remove a child, if it exists. */
  removeChild(label: string): void {
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

/** Copy a label. In V8 a substring of 13 characters or more keeps the whole string in memory, and a node may outlive the topic. */
function detach(label: string, source: string): string {
  return label.length >= 13 && source.length - label.length > 256 ? Buffer.from(label).toString() : label;
}
