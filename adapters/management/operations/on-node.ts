import { Fault } from '../../rest/index.ts';
import type { Example, Input } from '../../rest/kit/index.ts';
import { NODE } from '../examples.ts';
import type { Context, Operation } from '../operation.ts';

/** @throws Fault unknownNode */
export function checkNode({ broker }: Context, node: string): void {
  if (node !== broker.settings.node) throw new Fault('unknownNode', `there is no node "${node}"`);
}

/**
 * Add the form for a node to each operation with the column `onNode`: with `/nodes/:node` before the path, and the check of the node;
 * `ctl` uses the form for the cluster.
 */
export function withNodeForms(rows: readonly Operation[]): Operation[] {
  return rows.flatMap((row) => {
    if (row.onNode === undefined) return [row];
    const [name, descr, place = 'after'] = row.onNode;
    const forms = [row, nodeForm(row, name, descr)];
    return place === 'after' ? forms : forms.reverse();
  });
}

function nodeForm(row: Operation, name: string, descr: string): Operation {
  const { path, example, run } = row;
  const withNode = (one: Example): Example => ({ ...one, params: { node: NODE, ...one.params } });
  return {
    ...row,
    name,
    descr,
    path: `/nodes/:node${path}`,
    ctl: undefined,
    example: typeof example === 'function' ? (revision) => withNode(example(revision)) : example && withNode(example),
    run: (context, input) => {
      checkNode(context, (input as Input<':node'>).params.node);
      return run(context, input);
    }
  };
}
