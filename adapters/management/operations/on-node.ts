import type { TSchema } from 'typebox';
import { Fault } from '../../rest/index.ts';
import { type Example, type Input, listOf, objectOf, text } from '../../rest/kit/index.ts';
import { NODE } from '../examples.ts';
import type { Operation } from '../operation.ts';

/**
 * Complete the operations. One with the column `onNode` gets a form for a node behind it, with `/nodes/:node` before the path, which
 * `ctl` does not use; one with the column `ofAllNodes` gets a form for all nodes before it. All with the parameter
 * `:node` check that it is the name of the broker, because there is no other node.
 */
export function withNodeForms(rows: readonly Operation[]): Operation[] {
  return rows.flatMap(formsOf).map((row) => (row.path.includes('/:node') ? checked(row) : row));
}

function formsOf(row: Operation): Operation[] {
  if (row.ofAllNodes !== undefined) return [defineForAllNodes(row, row.ofAllNodes), row];
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

function defineForAllNodes(row: Operation, { field, ...names }: NonNullable<Operation['ofAllNodes']>): Operation {
  const { data } = row.example as Example;
  return {
    ...row,
    ctl: undefined,
    ...names,
    path: row.path.replace(/(\/nodes)?\/:node/, ''),
    data: listOf(
      objectOf({
        node: text('Name of the node'),
        [field]: { ...row.data, description: `The ${field} of the node` } as TSchema
      })
    ),
    example: data === undefined ? {} : { data: [{ node: NODE, [field]: data }] },
    run: async (context, input) => [{ node: context.broker.settings.node, [field]: await row.run(context, input) }]
  };
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
