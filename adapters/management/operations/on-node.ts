import type { Static, TObject, TSchema } from 'typebox';
import { Fault } from '../../rest/index.ts';
import { NODE } from '../examples.ts';
import type { Context, Example, ExampleOf, Input, Operation, operation } from '../operation.ts';

/** @throws Fault unknownNode */
export function checkNode({ broker }: Context, node: string): void {
  if (node !== broker.settings.node) throw new Fault('unknownNode', `there is no node "${node}"`);
}

/** The names of the two forms of an operation: for the cluster, and for one of its nodes. */
interface Forms {
  readonly cluster: readonly [name: string, descr: string];
  readonly node: readonly [name: string, descr: string];
}

/**
 * Make two rows of an operation: one for the cluster and one for a single node. They differ in the name, in
 * `/nodes/:node` before the path, and in the check of the node; `ctl` uses the first one.
 * @returns the row for the cluster, and the one for a node
 */
export function inClusterAndOnNode<const P extends string, Q extends TObject, B extends TSchema>(
  { cluster, node }: Forms,
  row: Omit<Parameters<typeof operation<P, Q, B>>[0], 'name' | 'descr' | 'run'> & {
    run(context: Context, input: Input<P, Static<Q>, Static<B>>): unknown;
  }
): [Operation, Operation] {
  const { path, example, run } = row as unknown as Operation;
  const onNode: Pick<Operation, 'path' | 'ctl' | 'run'> = {
    path: `/nodes/:node${path}`,
    ctl: undefined,
    run: (context, input) => {
      checkNode(context, (input as Input<':node'>).params.node);
      return run(context, input);
    }
  };
  return [
    { ...row, run, name: cluster[0], descr: cluster[1] } as Operation,
    { ...row, ...onNode, name: node[0], descr: node[1], example: example && exampleOnNode(example) } as Operation
  ];
}

/** The example of the form for a node. */
function exampleOnNode(example: ExampleOf): ExampleOf {
  const withNode = (one: Example): Example => ({ ...one, params: { node: NODE, ...one.params } });
  return typeof example === 'function' ? (revision) => withNode(example(revision)) : withNode(example);
}
