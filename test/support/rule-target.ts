import type { ActionType, Resource, ResourceType } from 'embermq/adapter';

/** A type of resources whose targets are under the control of a test, with an action that sends to them. */
export class RuleTargets {
  /** True if targets can be reached. */
  areReachable = true;
  /** The outputs that were sent. */
  readonly received: string[] = [];
  readonly type: ResourceType;

  constructor(name = 'test_target') {
    this.type = {
      name,
      provider: 'tests',
      title: { en: 'Target', zh: '目标' },
      description: { en: 'A target of tests', zh: '测试目标' },
      params: {
        url: { type: 'string', format: 'url', required: true, title: text('URL'), description: text('Where it is') },
        token: { type: 'string', isSecret: true, title: text('Token'), description: text('A secret') }
      },
      actions: [sendingAction(name)],
      make: () => this.#resource()
    };
  }

  #resource(): Resource {
    return {
      check: () => {
        if (!this.areReachable) throw new Error('connect ECONNREFUSED 127.0.0.1:1');
      },
      send: (entries) => {
        for (const { content } of entries) this.received.push(String(content));
      },
      close: () => undefined
    };
  }
}

function sendingAction(type: string): ActionType {
  return {
    name: 'send_to_target',
    app: 'tests',
    types: [type],
    category: 'data_forward',
    title: text('Send'),
    description: text('Send the output'),
    make: () => ({ prepare: (output) => JSON.stringify(output) })
  };
}

function text(en: string) {
  return { en, zh: en };
}
