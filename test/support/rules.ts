import { type BrokerOptions, createBroker } from 'embermq';
import type { ManagementOptions } from 'embermq/management';
import { VirtualClock } from 'embermq/testing';
import { REVISIONS } from '../../adapters/management/revisions.ts';
import type { SinkType } from '../../lib/adapter.ts';
import { serveManagement } from './management.ts';
import { RuleTargets } from './rule-target.ts';

/** The revisions, each with both forms of errors. */
export const MOUNTS = REVISIONS.flatMap((revision) =>
  (['documented', 'original'] as const).map((errors) => ({ revision, errors }))
);

/** A rule and a resource that requests can create. */
export const SQL = 'SELECT payload.t AS t FROM "sensors/+" WHERE payload.t > 20';
export const RULE = { rawsql: SQL, actions: [{ name: 'do_nothing', params: {} }] };
export const RESOURCE = { type: 'test_target', config: { url: 'http://192.0.2.1/' } };
export const NODE = 'embermq@127.0.0.1';

type RulesOptions = NonNullable<BrokerOptions['rules']>;

/** Start a broker whose rules can use test targets, and serve its management interface below `/api`. */
export async function serveRules(options: ManagementOptions = {}, rules: RulesOptions = {}, sinks: SinkType[] = []) {
  const clock = new VirtualClock();
  const targets = new RuleTargets();
  const broker = createBroker({
    clock,
    passwordCost: 10,
    streams: { sinks },
    rules: { ...rules, resources: [targets.type, ...(rules.resources ?? [])] }
  });
  // instead of standard output
  broker.on('rule.inspected', () => undefined);
  await broker.start();
  await broker.applications.create({ id: 'app', secret: 'a secret' });
  const server = await serveManagement(broker, options);
  return {
    broker,
    clock,
    targets,
    call: server.call,
    async [Symbol.asyncDispose]() {
      await server[Symbol.asyncDispose]();
      await broker.stop();
    }
  };
}
