import { hideSecrets } from '../../lib/base/secrets.ts';
import type { Outbox, OutboxEntry, Outcome } from '../../lib/index.ts';
import { checkParams } from '../../lib/rules/params.ts';
import type { Params, Resource, ResourceType, RuleEvent, SendingAction } from '../../lib/rules/types.ts';
import type { Value } from '../../lib/sql/values.ts';
import { createTestBroker, type TestBroker } from '../../lib/testing/index.ts';

/** An event of a rule with given columns. */
export function eventOf(name: RuleEvent['name'], columns: Readonly<Record<string, Value>> = {}): RuleEvent {
  return { name, column: (column) => columns[column], columns: () => columns };
}

/** The options from which a `ResourceHost` is created. */
export interface HostOptions {
  readonly type: ResourceType;
  readonly config: Params;
  /** Parameters of the action. */
  readonly params?: Params;
  readonly node?: string;
}

/** A resource with one action, and the outbox that leads from one to the other. */
export interface ResourceHost extends AsyncDisposable {
  readonly kit: TestBroker;
  readonly resource: Resource;
  readonly action: SendingAction;
  readonly outbox: Outbox;
  /** The outcomes of the entries that have left the outbox, in this order. */
  readonly outcomes: Outcome[];
  /** Run the action for an output. */
  add(output: Value, event?: RuleEvent, ruleId?: string): void;
  /** Check whether the target can be reached. */
  check(): Promise<void>;
}

/** Create a resource of a type in a broker, as the rule engine does. The action is the first one of the type. */
export async function hostOf({ type, config, params = {}, node = 'n1' }: HostOptions): Promise<ResourceHost> {
  const kit = await createTestBroker({ leakCheck: false });
  const { broker } = kit;
  const [actionType] = type.actions ?? [];
  const checked = checkParams(type.params, config, type.name);
  hideSecrets(type.params, checked);
  const failed = (error: unknown) => {
    throw error;
  };
  const resource = type.make(checked, { id: 'resource:1', node, clock: broker.clock, failed });
  const given = { $resource: 'resource:1', ...params };
  const action = (await actionType.create?.(checkParams(actionType.params, given, actionType.name), {
    ruleId: 'rule:1',
    actionId: `${actionType.name}_1`,
    node,
    config: checked
  })) as SendingAction;
  const outcomes: Outcome[] = [];
  const outbox = broker.outboxes.open({
    ...resource.outbox,
    name: 'resource:1',
    send: (entries, attempt) => resource.send(entries.map(resourceEntry), attempt),
    settled: (_entry, outcome) => outcomes.push(outcome)
  });
  return {
    ...{ kit, resource, action, outbox, outcomes },
    add: (output, event = eventOf('message.publish'), ruleId = 'rule:1') => {
      outbox.add(ruleId, action.prepare(output, event) as string | Buffer);
    },
    check: async () => resource.check(new AbortController().signal),
    async [Symbol.asyncDispose]() {
      outbox.close();
      await resource.close();
      await kit[Symbol.asyncDispose]();
    }
  };
}

function resourceEntry({ id, key, content, attempts }: OutboxEntry) {
  return { id, content, attempts, ruleId: key, actionId: 'action_1' };
}
