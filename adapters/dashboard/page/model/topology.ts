// The topology of a stream rule as a drawing: nodes in layers from the sources to the sinks.

/** Nodes and their successors, as the interface has them. */
export interface Topology {
  readonly sources: readonly string[];
  readonly edges: Readonly<Record<string, readonly string[]>>;
}

/** A node at its place: its layer, and its place in it. */
export interface PlacedNode {
  readonly name: string;
  readonly layer: number;
  readonly row: number;
}

/** Place the nodes: each in the layer after the last one of those before it. */
export function placed({ sources, edges }: Topology): readonly PlacedNode[] {
  const names = [...new Set([...sources, ...Object.keys(edges), ...Object.values(edges).flat()])];
  const layers = new Map(names.map((name) => [name, 0]));
  // at most as many rounds as there are nodes, also if there is a cycle
  for (let round = 0; round < names.length; round++) {
    let hasChanged = false;
    for (const [from, targets] of Object.entries(edges))
      for (const to of targets) {
        const layer = (layers.get(from) as number) + 1;
        if (layer <= (layers.get(to) as number) || layer >= names.length) continue;
        layers.set(to, layer);
        hasChanged = true;
      }
    if (!hasChanged) break;
  }
  const rows = new Map<number, number>();
  return names.map((name) => {
    const layer = layers.get(name) as number;
    const row = rows.get(layer) ?? 0;
    rows.set(layer, row + 1);
    return { name, layer, row };
  });
}
