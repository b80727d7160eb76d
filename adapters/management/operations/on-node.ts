import { Fault } from '../../rest/index.ts';
import type { Example, Input, RowTypes } from '../../rest/kit/index.ts';
import { NODE } from '../examples.ts';
import type { Context, Operation } from '../operation.ts';

/** @throws Fault unknownNode */
export function checkNode({ broker }: Context, node: string): void {
  if (node !== broker.settings.node) throw new Fault('unknownNode', `there is no node "${node}"`);
}

/** The literal types of the form for a node. */
type OnNode<T extends RowTypes, Name extends string> = Omit<T, 'name' | 'path'> & {
  readonly name: Name;
  readonly path: `/nodes/:node${T['path']}`;
};

/**
 * Make two rows of an operation: one for the cluster and one for a single node. They differ in the name, in
 * `/nodes/:node` before the path, and in the check of the node; `ctl` uses the first one.
 * @returns the row for the cluster, and the one for a node
 */
export function inClusterAndOnNode<const Name extends string, T extends RowTypes>(
  [name, descr]: readonly [name: Name, descr: string],
  row: Operation<T>
): [Operation<T>, Operation<OnNode<T, Name>>] {
  const { path, example, run } = row as Operation;
  const withNode = (one: Example): Example => ({ ...one, params: { node: NODE, ...one.params } });
  const onNode: Pick<Operation, 'name' | 'descr' | 'path' | 'ctl' | 'example' | 'run'> = {
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
  return [row, { ...row, ...onNode } as Operation<OnNode<T, Name>>];
}
