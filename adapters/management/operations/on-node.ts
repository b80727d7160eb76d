import { Fault } from '../../rest/index.ts';
import type { Example, Input } from '../../rest/kit/index.ts';
import { NODE } from '../examples.ts';
import type { Operation } from '../operation.ts';

/**
 * Complete the operations: each with the column `onNode` gets a second form, with `/nodes/:node` before the path, which `ctl` does not use.
 * All operations with the parameter `:node` check that it is the name of the broker, because there is no other node.
 */
export function withNodeForms(rows: readonly Operation[]): Operation[] {
  return rows.flatMap(formsOf).map((row) => (row.path.includes('/:node') ? checked(row) : row));
}

function formsOf(row: Operation): Operation[] {
  if (row.onNode === undefined) return [row];
  const [name, descr, place = 'after'] = row.onNode;
  const { path, example } = row;
  const withNode = (one: Example): Example => ({ ...one, params: { node: NODE, ...one.params } });
  const onNode: Operation = {
    ...row,
    name,
    descr,
    path: `/nodes/:node${path}`,
    ctl: undefined,
    example: typeof example === 'function' ? (revision) => withNode(example(revision)) : example && withNode(example)
  };
  return place === 'after' ? [row, onNode] : [onNode, row];
}

function checked(row: Operation): Operation {
  return {
    ...row,
    run: (context, input) => {
      const { node } = (input as Input<':node'>).params;
      if (node !== context.broker.settings.node) throw new Fault('unknownNode', `there is no node "${node}"`);
      return row.run(context, input);
    }
  };
}
